/** Short-lived cache: at most one look-up of a key in `FRESH_MS`, so changes show that much later. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';

/** How long a session, user or client stays fresh, ms. Together with other delays, changes count within a second. */
const FRESH_MS = 500;

export interface FreshCache<V> {
  /** The fresh entry of a key; `undefined`: it is missing or stale, so call `load`. */
  peek(key: string): { readonly value: V } | undefined;
  /** Looks a key up again, whatever is remembered of it: once for all concurrent callers. */
  load(key: string): Promise<V>;
  set(key: string, value: V): void;
  /** Removes the entry, and discards the result of a look-up in progress. */
  forget(key: string): void;
}

interface Entry<V> {
  readonly at: number;
  readonly look: Promise<V>;
  found?: { readonly value: V };
}

/**
 * An entry's age counts from the start of its look-up. `now`: milliseconds. `fetchMethod` of lru-cache can't replace
 * this: it shares a look-up however old that is, counts the age from its end, and stores no `undefined`.
 */
export function freshCache<V>(options: {
  max: number;
  now: () => number;
  look: (key: string) => Promise<V>;
}): FreshCache<V> {
  const { max, now, look } = options;
  const entries = new LRUCache<string, Entry<V>>(atMost(max));
  const fresh = (key: string): Entry<V> | undefined => {
    const entry = entries.get(key);
    if (entry === undefined) return undefined;
    // A clock that is set back must not keep old entries fresh for longer.
    const age = now() - entry.at;
    return age >= 0 && age < FRESH_MS ? entry : undefined;
  };
  return {
    peek: (key) => fresh(key)?.found,
    load(key) {
      const already = fresh(key);
      if (already !== undefined && already.found === undefined) return already.look;
      const entry: Entry<V> = { at: now(), look: look(key) };
      entries.set(key, entry);
      entry.look.then(
        (value) => {
          entry.found = { value };
        },
        () => {
          if (entries.peek(key) === entry) entries.delete(key);
        },
      );
      return entry.look;
    },
    set(key, value) {
      entries.set(key, { at: now(), look: Promise.resolve(value), found: { value } });
    },
    forget(key) {
      entries.delete(key);
    },
  };
}
