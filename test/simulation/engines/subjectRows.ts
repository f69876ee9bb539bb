/** The rows of a simulated key store: what survives crashes. Its methods work at once, each as a whole. */
import {
  refuseInvalid,
  refuseInvalidErasure,
  refuseInvalidId,
  refuseLongSecret,
  takenId,
} from '../../../src/adapters/keyStoreRules.js';
import type { ErasureRow, SubjectRow } from '../../../src/ports/keyStore.js';

export interface SubjectRows {
  byId(ids: readonly string[]): Map<string, SubjectRow>;
  byLookup(lookups: readonly string[]): Map<string, SubjectRow>;
  /** @throws Error when a row is malformed, or its id has another lookup */
  add(rows: readonly SubjectRow[]): Map<string, SubjectRow>;
  rewrap(rows: readonly Pick<SubjectRow, 'id' | 'secret'>[]): void;
  page(after: string | undefined, limit: number): SubjectRow[];
  setFenced(ids: readonly string[], fenced: boolean): void;
  remove(ids: readonly string[]): void;
  removed(ids: readonly string[]): Set<string>;
  putErasure(row: ErasureRow): void;
  erasures(after: string | undefined, limit: number): ErasureRow[];
  /** Copies everything. @returns puts it back in the place of what is stored by then */
  copied(): () => void;
  /** All rows, for tests. */
  readonly rows: Map<string, SubjectRow>;
}

export function subjectRows(): SubjectRows {
  const rows = new Map<string, SubjectRow>();
  /** Ids by lookup. */
  const lookups = new Map<string, string>();
  const removed = new Set<string>();
  const erasures = new Map<string, ErasureRow>();

  const rowOf = (id: string | undefined): SubjectRow | undefined => (id === undefined ? undefined : rows.get(id));
  const byLookup = (wanted: readonly string[]): Map<string, SubjectRow> =>
    new Map(
      wanted.flatMap((lookup) => [rowOf(lookups.get(lookup))].flatMap((row) => (row ? [[lookup, row] as const] : []))),
    );

  return {
    rows,
    byId: (ids) => new Map(ids.flatMap((id) => [rows.get(id)].flatMap((row) => (row ? [[id, row] as const] : [])))),
    byLookup,
    add(added) {
      added.forEach(refuseInvalid);
      for (const { id, lookup, secret } of added) {
        if (removed.has(id) || lookups.has(lookup)) continue;
        if (rows.has(id)) throw takenId(id);
        rows.set(id, { id, lookup, secret });
        lookups.set(lookup, id);
      }
      return byLookup(added.map(({ lookup }) => lookup));
    },
    rewrap(changed) {
      changed.forEach(refuseLongSecret);
      for (const { id, secret } of changed) {
        const row = rows.get(id);
        if (row !== undefined) rows.set(id, { ...row, secret });
      }
    },
    page: (after, limit) => pageOf(rows.values(), after, limit),
    setFenced(ids, fenced) {
      ids.forEach(refuseInvalidId);
      for (const id of ids) {
        const row = rows.get(id);
        if (row === undefined) continue;
        const { fenced: _, ...free } = row;
        rows.set(id, fenced ? { ...free, fenced } : free);
      }
    },
    remove(ids) {
      ids.forEach(refuseInvalidId);
      for (const id of ids) {
        const row = rows.get(id);
        if (row !== undefined) lookups.delete(row.lookup);
        rows.delete(id);
        removed.add(id);
      }
    },
    removed: (ids) => new Set(ids.filter((id) => removed.has(id))),
    putErasure(row) {
      refuseInvalidErasure(row);
      erasures.set(row.id, { ...row });
    },
    erasures: (after, limit) => pageOf(erasures.values(), after, limit),
    copied() {
      const copies = [rows, lookups, erasures].map(
        (one) => [one, [...one]] as [Map<string, unknown>, [string, unknown][]],
      );
      const before = [...removed];
      return () => {
        for (const [map, copy] of copies) {
          map.clear();
          for (const [key, value] of copy) map.set(key, value);
        }
        removed.clear();
        for (const id of before) removed.add(id);
      };
    },
  };
}

function pageOf<R extends { readonly id: string }>(all: Iterable<R>, after: string | undefined, limit: number): R[] {
  return [...all]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .filter(({ id }) => after === undefined || id > after)
    .slice(0, limit);
}
