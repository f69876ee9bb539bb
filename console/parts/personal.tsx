/** Personal fields: masked until they are requested with a reason. Each showing leaves a record of its own. */
import { useId, useState } from 'preact/hooks';

export interface Sight {
  /** The reason; `undefined`: personal fields are masked. */
  readonly reason: string | undefined;
}

interface PersonalProps {
  readonly sight: Sight;
  readonly change: (sight: Sight) => void;
  /** A reason that was given on the page before. */
  readonly known?: string;
}

/** The query of a call whose answer has personal fields. */
export const sightQuery = ({ reason }: Sight): { readonly personal?: true; readonly reason?: string } =>
  reason === undefined ? {} : { personal: true, reason };

export function Personal({ sight, change, known = '' }: PersonalProps) {
  if (sight.reason !== undefined)
    return (
      <p role="status">
        Personal data is shown, for the reason “{sight.reason}”.{' '}
        <button
          type="button"
          class="outline secondary small"
          onClick={({ currentTarget }) => {
            focusHeadingOf(currentTarget);
            change({ reason: undefined });
          }}
        >
          Mask it
        </button>
      </p>
    );
  return (
    <details class="action">
      <summary role="button" class="outline secondary">
        Show personal data
      </summary>
      <ReasonForm key={known} label="Show" start={known} give={(reason) => change({ reason })} />
    </details>
  );
}

interface ReasonFormProps {
  readonly label: string;
  readonly start?: string;
  readonly give: (reason: string) => void;
}

/** A reason, without which something is not shown. */
export function ReasonForm({ label, start = '', give }: ReasonFormProps) {
  const id = useId();
  const [typed, setTyped] = useState(start);
  return (
    <form
      class="narrow"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        focusHeadingOf(event.currentTarget);
        give(typed.trim());
      }}
    >
      <label for={id}>Reason</label>
      <input
        id={id}
        required
        pattern=".*\S.*"
        maxLength={500}
        autocomplete="off"
        value={typed}
        aria-describedby={`${id}-hint`}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <small id={`${id}-hint`}>Stored in the access record of what is shown.</small>
      <button type="submit">{label}</button>
    </form>
  );
}

/** Gives the focus to the heading above an element that is about to make room, with the focus in it. */
function focusHeadingOf(element: Element): void {
  const isAbove = (heading: Element): boolean =>
    (heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  const heading = [...document.querySelectorAll<HTMLElement>('h1, h2')].findLast(isAbove);
  if (heading === undefined) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
