/**
 * What changes something: it says what will happen, takes a reason, and has one effect however often it is sent. What
 * was typed stays until it has succeeded.
 */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../service/attempt.js';
import { useDraft, type Values } from '../service/drafts.js';
import { session, type Role } from '../service/session.js';
import { Problem } from './page.js';
import { AS_TYPED } from './text.js';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'date' | 'datetime-local' | 'tel' | 'checkbox' | 'lines' | 'number';
  readonly hint?: string;
  readonly optional?: true;
  /** Value until another one is typed. */
  readonly start?: string;
}

interface ActionProps {
  readonly label: string;
  /** What it is done to, where that changes on one page: a preview and a key are of one choice. */
  readonly of?: string;
  /** Whether another choice opens the action, with the focus in its last field. */
  readonly opens?: true;
  /** What will happen to people and money, in a sentence. */
  readonly effect: ComponentChildren;
  readonly fields?: readonly Field[];
  /** Says in numbers what would be done; shown before the call that does it. */
  readonly preview?: (values: Values, say: Say) => Promise<ComponentChildren>;
  /** @param key the same for each try with the same values. @returns what was done, to show; `null`: it is shown elsewhere */
  readonly run: (values: Values, key: string, say: Say) => Promise<ComponentChildren>;
  readonly done?: () => void;
  readonly roles?: readonly Role[];
}

/** `reason` is always one of them. */
export type { Values };

/** Shows how far a call of several steps is. */
export type Say = (progress: string) => void;

type Outcome =
  | { readonly kind: 'working' | 'previewed' | 'done'; readonly text: ComponentChildren }
  | { readonly kind: 'failed'; readonly text: string };

/** Whether the user has one of the roles. */
export const may = (roles: readonly Role[]): boolean =>
  session.value.state === 'in' && session.value.roles.some((role) => roles.includes(role));

export function Action(props: ActionProps) {
  const { label, of = '', opens, effect, fields = [], preview, run, done, roles = ['support'] } = props;
  const id = useId();
  const [{ typed, key }, draft] = useDraft(`${label} ${of}`);
  const [isOpen] = useState(key !== undefined || Object.keys(typed).length > 0);
  const form = useRef<HTMLDetailsElement>(null);
  const isFirst = useRef(true);
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  /** Number of changes to values and choice: what a call says is true of those that it was made with. */
  const changes = useRef(0);
  // Another choice, as other values, is another command; what was done to the former one stays to be read.
  useLayoutEffect(() => {
    if (isFirst.current) return void (isFirst.current = false);
    changes.current++;
    setOutcome((before) => (before?.kind === 'done' ? before : undefined));
    // Lines name entities of the former choice.
    const lines = new Set(fields.filter(({ type }) => type === 'lines').map(({ name }) => name));
    draft({ typed: Object.fromEntries(Object.entries(typed).filter(([name]) => !lines.has(name))) });
    if (opens !== true || form.current === null) return undefined;
    form.current.open = true;
    [...form.current.querySelectorAll('input')].at(-1)?.focus();
    return undefined;
  }, [of]);
  if (session.value.state === 'in' && !may(roles)) return null;
  const values: Values = { ...startsOf(fields), ...typed };
  const change = (name: string, value: string): void => {
    changes.current++;
    draft({ typed: { ...typed, [name]: value } });
    setOutcome(undefined);
  };
  const say: Say = (text) => setOutcome({ kind: 'working', text });
  const work = async (kind: 'previewed' | 'done', call: () => Promise<ComponentChildren>): Promise<void> => {
    const before = changes.current;
    const isOfOthers = (): boolean => changes.current !== before;
    setBusy(true);
    try {
      const text = await call();
      // The button must not act on values that no preview was shown of.
      setOutcome(kind === 'previewed' && isOfOthers() ? undefined : { kind, text });
      if (kind === 'done') {
        // What was typed since is not done.
        if (!isOfOthers()) draft();
        done?.();
      }
    } catch (error) {
      setOutcome(kind === 'previewed' && isOfOthers() ? undefined : { kind: 'failed', text: messageOf(error) });
    } finally {
      setBusy(false);
    }
  };
  // A call that failed is repeated as it was, with its key.
  const isPreview = preview !== undefined && outcome?.kind !== 'previewed' && key === undefined;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (isPreview) return void work('previewed', async () => preview(values, say));
    const sent = key ?? newKey();
    draft({ typed, key: sent });
    void work('done', async () => run(values, sent, say));
  };
  const button = isPreview ? 'Show what will happen' : key === undefined || busy ? label : 'Try again';
  return (
    <details class="action" open={isOpen} ref={form}>
      <summary role="button" class="outline secondary">
        {label}
      </summary>
      {/* Enter that is held down must not act on a preview that nobody has read. */}
      <form onSubmit={submit} onKeyDown={(event) => event.repeat && event.key === 'Enter' && event.preventDefault()}>
        <p>{effect}</p>
        {[...fields, REASON].map((field) => (
          <FieldInput
            key={field.name}
            id={`${id}-${field.name}`}
            field={field}
            value={values[field.name] ?? ''}
            change={change}
          />
        ))}
        {outcome === undefined || outcome.text === null ? null : outcome.kind === 'failed' ? (
          <Problem>{outcome.text}</Problem>
        ) : (
          <div role="status" class={outcome.kind === 'done' ? 'done' : undefined}>
            {outcome.text}
          </div>
        )}
        <button type="submit" aria-busy={busy} disabled={busy}>
          {button}
        </button>
      </form>
    </details>
  );
}

const startsOf = (fields: readonly Field[]): Values =>
  Object.fromEntries(fields.flatMap(({ name, start }) => (start === undefined ? [] : [[name, start]])));

/** Random; `crypto.randomUUID` is not there where the page is not served by https. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const REASON: Field = {
  name: 'reason',
  label: 'Reason',
  hint: 'Stored with what you do. Leave out names and numbers.',
};

interface InputProps {
  readonly id: string;
  readonly field: Field;
  readonly value: string;
  readonly change: (name: string, value: string) => void;
}

function FieldInput({ id, field: { name, label, type = 'text', hint, optional }, value, change }: InputProps) {
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  return (
    <div>
      <label for={id}>{optional === true && type !== 'checkbox' ? `${label} (optional)` : label}</label>
      {type === 'checkbox' ? (
        <input
          id={id}
          type="checkbox"
          checked={value === 'true'}
          onChange={({ currentTarget }) => change(name, currentTarget.checked ? 'true' : '')}
          {...described}
        />
      ) : type === 'lines' ? (
        <textarea
          id={id}
          rows={6}
          value={value}
          required={optional !== true}
          {...AS_TYPED}
          onInput={({ currentTarget }) => change(name, currentTarget.value)}
          {...described}
        />
      ) : (
        <input
          id={id}
          type={type}
          value={value}
          required={optional !== true}
          {...(name === REASON.name ? { autocomplete: 'off' } : AS_TYPED)}
          maxLength={500}
          onInput={({ currentTarget }) => change(name, currentTarget.value)}
          {...described}
        />
      )}
      {hint === undefined ? null : <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}
