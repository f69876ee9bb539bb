/** Records in memory, for workers' tests, which need a clock of their own and no files. */
import type { Records, StoredRecord } from '../../../src/ports/readStore.js';

/** Empty records; `now`: milliseconds since the epoch. */
export function memoryRecords(now: () => number): Records {
  const stored = new Map<string, StoredRecord>();
  const find = (key: string): StoredRecord | undefined => {
    const record = stored.get(key);
    return record?.expiresAt !== undefined && record.expiresAt <= now() ? undefined : record;
  };
  return {
    get: async <V>(key: string) => find(key) as StoredRecord<V> | undefined,
    async put(key, value, { expected, expiresAt } = {}) {
      const version = find(key)?.version ?? 0;
      if (expected !== undefined && expected !== version) return undefined;
      stored.set(key, {
        key,
        value: structuredClone(value),
        version: version + 1,
        ...(expiresAt === undefined ? {} : { expiresAt }),
      });
      return version + 1;
    },
    async delete(key, expected) {
      return (expected === undefined || find(key)?.version === expected) && stored.delete(key);
    },
    list: async <V>(prefix: string, limit?: number, after = '') =>
      [...stored.keys()]
        .filter((key) => key.startsWith(prefix) && key > after)
        .toSorted()
        .flatMap((key) => find(key) ?? [])
        .slice(0, limit) as StoredRecord<V>[],
  };
}
