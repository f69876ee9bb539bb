/** Short-lived cache: at most one look-up of a key in `maxAgeMs`, so changes show that much later. */
import { LRUCache } from 'lru-cache';

/** How long a session, user or client stays fresh, ms. Together with other delays, changes count within a second. */
export const FRESH_MS = 500;

export interface FreshCache<V> {
  /** The fresh entry of a key; `undefined`: it is missing or stale, so call `load`. */
  peek(key: string): { readonly value: V } | undefined;
  /** Looks a key up, once for all concurrent callers. */
  load(key: string): Promise<V>;
  set(key: string, value: V): void;
  /** Removes the entry, and discards the result of a look-up in progress. */
  forget(key: string): void;
}

/** An entry's age counts from the start of its look-up. `now`: milliseconds. */
export function freshCache<V>(options: {
  max: number;
  maxAgeMs: number;
  now: () => number;
  look: (key: string) => Promise<V>;
}): FreshCache<V> {
  const { maxAgeMs, now, look } = options;
  const entries = new LRUCache<string, { readonly at: number; readonly value: V }>({ max: options.max });
  const loading = new Map<string, { readonly at: number; readonly value: Promise<V> }>();
  // A clock that is set back must not keep old entries fresh for longer.
  const fresh = (at: number): boolean => {
    const age = now() - at;
    return age >= 0 && age < maxAgeMs;
  };
  return {
    peek(key) {
      const entry = entries.get(key);
      return entry !== undefined && fresh(entry.at) ? entry : undefined;
    },
    async load(key) {
      const already = loading.get(key);
      if (already !== undefined && fresh(already.at)) return already.value;
      const load = { at: now(), value: look(key) };
      loading.set(key, load);
      try {
        const value = await load.value;
        if (loading.get(key) === load) entries.set(key, { at: load.at, value });
        return value;
      } finally {
        if (loading.get(key) === load) loading.delete(key);
      }
    },
    set(key, value) {
      loading.delete(key);
      entries.set(key, { at: now(), value });
    },
    forget(key) {
      loading.delete(key);
      entries.delete(key);
    },
  };
}
