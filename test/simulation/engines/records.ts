/** The records of a simulated read store. Whether a record has expired is said by the clock of who asks. */
import { recordJson } from '../../../src/adapters/readStoreRules.js';
import { byBytes } from '../../../src/lib/byBytes.js';
import { systemMs } from '../../../src/lib/world.js';
import type { PutOptions, Records, StoredRecord, StoredText } from '../../../src/ports/readStore.js';
import { IMMEDIATE, type Link } from '../world/link.js';

interface Row {
  readonly key: string;
  readonly value: string;
  readonly version: number;
  readonly expiresAt?: number;
}

/** The records' rows: what survives crashes. `now`: milliseconds since the epoch by the caller's clock. */
export interface RecordRows {
  get(key: string, now: number): Row | undefined;
  put(key: string, value: string, options: PutOptions, now: number): number | undefined;
  delete(key: string, expected: number | undefined, now: number): boolean;
  list(prefix: string, limit: number, after: string | undefined, now: number): Row[];
  texts(): StoredText[];
  /** Loses everything. */
  clear(): void;
  /** Copies everything. @returns puts it back in the place of what is stored by then */
  copied(): () => void;
}

export function recordRows(): RecordRows {
  const rows = new Map<string, Row>();
  const get = (key: string, at: number): Row | undefined => {
    const row = rows.get(key);
    return row?.expiresAt !== undefined && row.expiresAt <= at ? undefined : row;
  };
  return {
    get,
    put(key, value, { expected, expiresAt }, at) {
      const version = get(key, at)?.version ?? 0;
      if (expected !== undefined && expected !== version) return undefined;
      rows.set(key, { key, value, version: version + 1, ...(expiresAt === undefined ? {} : { expiresAt }) });
      return version + 1;
    },
    delete(key, expected, at) {
      const row = get(key, at);
      if (row === undefined || (expected !== undefined && expected !== row.version)) return false;
      return rows.delete(key);
    },
    list: (prefix, limit, after, at) =>
      [...rows.keys()]
        .filter((key) => key.startsWith(prefix) && (after === undefined || byBytes(key, after) > 0))
        .sort(byBytes)
        .flatMap((key) => get(key, at) ?? [])
        .slice(0, limit),
    clear: () => rows.clear(),
    copied() {
      const copy = [...rows];
      return () => {
        rows.clear();
        for (const [key, row] of copy) rows.set(key, row);
      };
    },
    texts: () => [...rows.values()].map(({ key, value }) => ({ place: `record ${key}`, text: `${key}\n${value}` })),
  };
}

/**
 * A process's handle of the records.
 * @param refuse called first by each method; its error is the method's
 */
export function openSimulatedRecords(
  rows: RecordRows,
  {
    link = IMMEDIATE,
    clock = systemMs,
    refuse = () => undefined,
  }: {
    readonly link?: Link;
    readonly clock?: () => number;
    readonly refuse?: () => void;
  } = {},
): Records {
  return {
    async get<V>(key: string) {
      refuse();
      const at = clock();
      const row = await link.call({ text: `get ${key}`, effect: () => rows.get(key, at), reads: true });
      return row && recordOf<V>(row);
    },
    async put(key, value, options = {}) {
      refuse();
      const json = recordJson(key, value);
      const at = clock();
      // Who takes a record that is not there, and who changes one, are told apart.
      const text = `put ${key}${options.expected === undefined ? '' : ` at ${options.expected}`}`;
      return link.call({ text, effect: () => rows.put(key, json, options, at) });
    },
    async delete(key, expected) {
      refuse();
      const at = clock();
      return link.call({ text: `delete ${key}`, effect: () => rows.delete(key, expected, at) });
    },
    async list<V>(prefix: string, limit = Number.MAX_SAFE_INTEGER, after?: string) {
      refuse();
      const at = clock();
      const effect = (): Row[] => rows.list(prefix, limit, after, at);
      return (await link.call({ text: `list ${prefix}`, effect, reads: true })).map((row) => recordOf<V>(row));
    },
  };
}

const recordOf = <V>({ value, ...row }: Row): StoredRecord<V> => ({ ...row, value: JSON.parse(value) as V });
