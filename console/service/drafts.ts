/**
 * What is typed into actions. It stays until its action has succeeded, also while another page of the console is shown,
 * and the browser asks before it leaves the console with it.
 */
import { useEffect, useRef, useState } from 'preact/hooks';

/** Typed values by the names of their fields. */
export type Values = Readonly<Record<string, string>>;

export interface Draft {
  readonly typed: Values;
  /** Idempotency key under which these values were sent, without an answer that ends it. */
  readonly key?: string | undefined;
}

const EMPTY: Draft = { typed: {} };
const drafts = new Map<string, Draft>();

addEventListener('beforeunload', (event) => {
  if (drafts.size > 0) event.preventDefault();
});

/** Forgets all of it: somebody else goes on in this window. */
export const forgetDrafts = (): void => drafts.clear();

const isTyped = ({ typed, key }: Draft): boolean =>
  key !== undefined || Object.values(typed).some((value) => value !== '');

function store(name: string, draft: Draft): void {
  if (isTyped(draft)) drafts.set(name, draft);
  else drafts.delete(name);
}

/**
 * The draft of an action. @param name of the action among those of its page
 * @returns it, and the function that replaces it; without an argument, that one ends the draft
 */
export function useDraft(name: string): readonly [Draft, (draft?: Draft) => void] {
  const [page] = useState(() => location.hash);
  const full = `${page} ${name}`;
  const [draft, set] = useState(() => drafts.get(full) ?? EMPTY);
  const former = useRef(full);
  useEffect(() => {
    if (former.current === full) return;
    drafts.delete(former.current);
    former.current = full;
    store(full, draft);
  }, [full]);
  return [
    draft,
    (after = EMPTY) => {
      store(full, after);
      set(after);
    },
  ];
}
