import type { ErasureRow, KeyStore, SubjectRow } from '../../../src/ports/keyStore.js';

/** A key store in memory, with its rows to look into. */
export interface MemoryKeys extends KeyStore {
  readonly rows: Map<string, SubjectRow>;
  /** Calls that read. */
  readonly reads: { count: number };
}

export function memoryKeys(): MemoryKeys {
  const rows = new Map<string, SubjectRow>();
  const removed = new Set<string>();
  const erasures = new Map<string, ErasureRow>();
  const reads = { count: 0 };
  const withLookup = (lookup: string): SubjectRow | undefined =>
    [...rows.values()].find((row) => row.lookup === lookup);
  const byLookup = (lookups: readonly string[]): ReadonlyMap<string, SubjectRow> =>
    new Map(lookups.flatMap((lookup) => [withLookup(lookup)].flatMap((row) => (row ? [[lookup, row] as const] : []))));
  const pageOf = <R extends { readonly id: string }>(all: Iterable<R>, after: string | undefined, limit: number): R[] =>
    [...all]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .filter(({ id }) => after === undefined || id > after)
      .slice(0, limit);
  return {
    engine: 'memory',
    rows,
    reads,
    async byId(ids) {
      reads.count += 1;
      return new Map(ids.flatMap((id) => [rows.get(id)].flatMap((row) => (row ? [[id, row] as const] : []))));
    },
    async byLookup(lookups) {
      reads.count += 1;
      return byLookup(lookups);
    },
    async add(added) {
      for (const { id, lookup, secret } of added)
        if (withLookup(lookup) === undefined && !removed.has(id)) rows.set(id, { id, lookup, secret });
      return byLookup(added.map(({ lookup }) => lookup));
    },
    async rewrap(changed) {
      for (const { id, secret } of changed) {
        const row = rows.get(id);
        if (row !== undefined) rows.set(id, { ...row, secret });
      }
    },
    page: async (after, limit) => pageOf(rows.values(), after, limit),
    async fence(ids) {
      for (const id of ids) {
        const row = rows.get(id);
        if (row !== undefined) rows.set(id, { ...row, fenced: true });
      }
    },
    async unfence(ids) {
      for (const id of ids) {
        const fenced = rows.get(id);
        if (fenced === undefined) continue;
        const { fenced: _, ...row } = fenced;
        rows.set(id, row);
      }
    },
    async remove(ids) {
      for (const id of ids) {
        rows.delete(id);
        removed.add(id);
      }
    },
    removed: async (ids) => new Set(ids.filter((id) => removed.has(id))),
    async putErasure(row) {
      erasures.set(row.id, row);
    },
    erasures: async (after, limit) => pageOf(erasures.values(), after, limit),
    ping: async () => undefined,
    close: async () => undefined,
  };
}
