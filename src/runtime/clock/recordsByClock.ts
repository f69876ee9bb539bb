import { clockMs } from '../../lib/clock.js';
import type { Records, StoredRecord } from '../../ports/readStore.js';

/**
 * Records that expire by the sandbox's clock: sessions, stored answers, counters. The store itself expires them by the
 * system's clock, which is never ahead of the sandbox's, and so never too early.
 */
export function recordsByClock(records: Records): Records {
  const alive = ({ expiresAt }: StoredRecord): boolean => expiresAt === undefined || expiresAt > clockMs();
  return {
    async get<V>(key: string) {
      const found = await records.get<V>(key);
      return found !== undefined && alive(found) ? found : undefined;
    },
    async put(key, value, options) {
      const put = await records.put(key, value, options);
      if (put !== undefined || options?.expected !== 0) return put;
      const found = await records.get(key);
      if (found === undefined || alive(found)) return undefined;
      await records.delete(key, found.version);
      return records.put(key, value, options);
    },
    delete: async (key, expected) => records.delete(key, expected),
    async list<V>(prefix: string, limit?: number, after?: string) {
      const found: StoredRecord<V>[] = [];
      for (let last = after; ;) {
        const page = await records.list<V>(prefix, limit, last);
        found.push(...page.filter(alive));
        last = page.at(-1)?.key;
        if (limit === undefined || page.length < limit || last === undefined) return found;
        if (found.length >= limit) return found.slice(0, limit);
      }
    },
  };
}
