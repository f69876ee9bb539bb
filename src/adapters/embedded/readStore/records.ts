/** The writer's transaction decides compare-and-set, so it holds across processes. */
import type { Database } from 'better-sqlite3';
import { byBytes } from '../../../lib/byBytes.js';
import type { Records, StoredRecord } from '../../../ports/readStore.js';
import { afterPrefix } from '../../prefix.js';
import { recordJson } from '../../readStoreRules.js';
import { VALUE } from '../sqlite.js';
import type { RecordRequest } from './messages.js';

const SWEEP_ROWS = 200;

const ALIVE = `(expires_at IS NULL OR expires_at > ${VALUE})`;

/** The table of records, changed within the caller's transaction. Times are milliseconds since the epoch. */
interface RecordsTable {
  /**
   * Carries out a change.
   * @returns a put's new version (`undefined`: not as expected), or whether a record was deleted
   */
  change(request: RecordRequest, now: number): number | undefined | boolean;
  /** Deletes some expired records. @returns whether there may be more */
  sweep(now: number): boolean;
}

export function recordsTable(database: Database): RecordsTable {
  const version = database
    .prepare<[string, number], number>(`SELECT version FROM record WHERE key = ? AND ${ALIVE}`)
    .pluck();
  const replace = database.prepare<[string, string, number, number | null]>(
    'INSERT OR REPLACE INTO record (key, value, version, expires_at) VALUES (?, ?, ?, ?)',
  );
  const remove = database.prepare<[string]>('DELETE FROM record WHERE key = ?');
  const sweep = database.prepare<[number]>(
    `DELETE FROM record WHERE rowid IN (SELECT rowid FROM record WHERE expires_at <= ${VALUE} LIMIT ${SWEEP_ROWS})`,
  );
  return {
    change(request, now) {
      const current = version.get(request.key, now) ?? 0;
      if (request.kind === 'put') {
        if (request.expected !== undefined && request.expected !== current) return undefined;
        replace.run(request.key, request.value, current + 1, request.expiresAt ?? null);
        return current + 1;
      }
      if (current === 0 || (request.expected !== undefined && request.expected !== current)) return false;
      remove.run(request.key);
      return true;
    },
    sweep: (now) => sweep.run(now).changes === SWEEP_ROWS,
  };
}

interface RecordsAccess {
  readonly read: <T>(work: () => T) => T;
  readonly change: <T>(request: RecordRequest) => Promise<T>;
}

type Row = readonly [key: string, value: string, version: number, expiresAt: number | null];

export function openRecords(database: Database, { read, change }: RecordsAccess): Records {
  const columns = 'SELECT key, value, version, expires_at FROM record WHERE';
  const one = database.prepare<[string, number], Row>(`${columns} key = ? AND ${ALIVE}`).raw();
  const from = database
    .prepare<[string, number, number], Row>(`${columns} key >= ${VALUE} AND ${ALIVE} ORDER BY key LIMIT ${VALUE}`)
    .raw();
  const range = database
    .prepare<[string, string, number, number], Row>(
      `${columns} key >= ${VALUE} AND key < ${VALUE} AND ${ALIVE} ORDER BY key LIMIT ${VALUE}`,
    )
    .raw();
  return {
    async get<V>(key: string) {
      const row = read(() => one.get(key, Date.now()));
      return row === undefined ? undefined : recordOf<V>(row);
    },
    async put(key, value, options = {}) {
      return change<number | undefined>({
        kind: 'put',
        key,
        value: recordJson(key, value),
        expected: options.expected,
        expiresAt: options.expiresAt,
      });
    },
    async delete(key, expected) {
      return change<boolean>({ kind: 'delete', key, expected });
    },
    async list<V>(prefix: string, limit = -1, after?: string) {
      const end = afterPrefix(prefix);
      const first = after === undefined ? prefix : later(prefix, `${after}\0`);
      const rows = read(() =>
        end === undefined ? from.all(first, Date.now(), limit) : range.all(first, end, Date.now(), limit),
      );
      return rows.map((row) => recordOf<V>(row));
    },
  };
}

function later(one: string, other: string): string {
  return byBytes(one, other) > 0 ? one : other;
}

function recordOf<V>([key, value, version, expiresAt]: Row): StoredRecord<V> {
  const record = { key, value: JSON.parse(value) as V, version };
  return expiresAt === null ? record : { key, value: record.value, version, expiresAt };
}
