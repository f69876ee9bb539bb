/** Records with compare-and-set: the filter of each change includes its expectation, so the server decides. */
import type { Records, StoredRecord } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { recordJson } from '../readStoreRules.js';
import { ensureIndexes } from './collections.js';
import { isDuplicateId } from './failures.js';
import { sortedFind } from './finds.js';
import { RECORDS } from './layout.js';
import { BULK_MS, type Database, type Connection } from './connection.js';
import { prefixOf } from './query.js';

interface MongoRecord {
  readonly _id: string;
  /** The value as JSON text, in which every key survives. */
  readonly v: string;
  readonly n: number;
  readonly e: Date;
}

/** Whether a stored document is a record. */
export const isRecord = ({ v, n, e }: Readonly<Record<string, unknown>>): boolean =>
  typeof v === 'string' && typeof n === 'number' && e instanceof Date;

const NEVER = new Date(8.64e15);
/** Attempts of a put: the record may appear or disappear between its two steps, but hardly ever twice. */
const ATTEMPTS = 20;

export async function ensureRecords(connection: Connection): Promise<void> {
  await ensureIndexes(connection, RECORDS, [{ name: 'e', key: { e: 1 }, expireAfterSeconds: 0 }]);
}

/** The store's records. This process's clock decides which have expired. */
export function createRecords(connection: Connection): Records {
  const records = (database: Database): ReturnType<typeof database.collection<MongoRecord>> =>
    database.collection<MongoRecord>(RECORDS);
  const alive = (): { readonly e: { readonly $gt: Date } } => ({ e: { $gt: new Date() } });

  async function create(_id: string, value: { readonly v: string; readonly e: Date }): Promise<1 | undefined> {
    return connection.write(async (database) => {
      try {
        await records(database).updateOne(
          { _id, e: { $lte: new Date() } },
          { $set: { ...value, n: 1 } },
          { upsert: true },
        );
        return 1;
      } catch (error) {
        if (isDuplicateId(error)) return undefined;
        throw error;
      }
    });
  }

  async function replace(_id: string, value: { readonly v: string; readonly e: Date }): Promise<number | undefined> {
    const changed = await connection.write((database) =>
      records(database).findOneAndUpdate(
        { _id, ...alive() },
        { $set: value, $inc: { n: 1 } },
        { returnDocument: 'after', projection: { n: 1 } },
      ),
    );
    return changed?.n;
  }

  return {
    async get<V>(key: string) {
      const record = await connection.read((database) => records(database).findOne({ _id: key, ...alive() }));
      return record === null ? undefined : recordOf<V>(record);
    },
    async put(key, value, { expected, expiresAt } = {}) {
      const next = {
        v: recordJson(key, value),
        e: expiresAt === undefined || expiresAt >= NEVER.getTime() ? NEVER : new Date(expiresAt),
      };
      if (expected === 0) return create(key, next);
      if (expected !== undefined) {
        const { matchedCount } = await connection.write((database) =>
          records(database).updateOne({ _id: key, n: expected, ...alive() }, { $set: { ...next, n: expected + 1 } }),
        );
        return matchedCount === 1 ? expected + 1 : undefined;
      }
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const version = (await replace(key, next)) ?? (await create(key, next));
        if (version !== undefined) return version;
      }
      throw new UnavailableError(`record ${key} came and went each time it was to be written`);
    },
    async delete(key, expected) {
      const filter = { _id: key, ...alive(), ...(expected === undefined ? {} : { n: expected }) };
      return (await connection.write((database) => records(database).deleteOne(filter))).deletedCount === 1;
    },
    async list<V>(prefix: string, limit?: number, after?: string) {
      const filter = { _id: { ...prefixOf(prefix), ...(after === undefined ? {} : { $gt: after }) }, ...alive() };
      const options = { sort: { _id: 1 }, limit } as const;
      return connection.read(
        (database) => sortedFind(records(database), filter, options, (record) => recordOf<V>(record)),
        BULK_MS,
      );
    },
  };
}

function recordOf<V>({ _id, v, n, e }: MongoRecord): StoredRecord<V> {
  const record = { key: _id, value: JSON.parse(v) as V, version: n };
  return e.getTime() === NEVER.getTime() ? record : { ...record, expiresAt: e.getTime() };
}
