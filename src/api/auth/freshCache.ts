/**
 * Remembers what was looked up for a moment: the look-ups of a busy key become one a moment, and a change shows a
 * moment later.
 */
import { LRUCache } from 'lru-cache';

/**
 * How long a session, user or client that was looked up is believed, in milliseconds: with what else it takes, changes
 * count within a second.
 */
export const FRESH_MS = 500;

/** A bounded cache of look-ups. */
export interface FreshCache<V> {
  /** What was looked up less than `maxAgeMs` ago; `undefined` when it must be looked up (see `load`). */
  peek(key: string): { readonly value: V } | undefined;
  /** Looks it up, once for all who ask meanwhile. */
  load(key: string): Promise<V>;
  /** What is known to stand there now. */
  set(key: string, value: V): void;
  /** Forgets it, and whatever is being looked up for it. */
  forget(key: string): void;
}

/** A cache of at most `max` entries, each served for `maxAgeMs` from when its look-up began. `now`: milliseconds. */
export function freshCache<V>(options: {
  max: number;
  maxAgeMs: number;
  now: () => number;
  look: (key: string) => Promise<V>;
}): FreshCache<V> {
  const { maxAgeMs, now, look } = options;
  const entries = new LRUCache<string, { readonly at: number; readonly value: V }>({ max: options.max });
  const loading = new Map<string, { readonly at: number; readonly value: Promise<V> }>();
  // A clock that is set back must not make old entries fresh for longer.
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
