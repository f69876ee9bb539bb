/**
 * Records in MongoDB: each change is one command whose filter holds what it expects, so it is decided by the server.
 */
import type { Records, StoredRecord } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { recordJson } from '../readStoreRules.js';
import { ensureIndexes } from './collections.js';
import { isDuplicateId } from './failures.js';
import { RECORDS } from './layout.js';
import { BULK_MS } from './connection.js';
import type { Database, Link } from './connection.js';
import { prefixOf } from './query.js';

/** A stored record. */
interface MongoRecord {
  readonly _id: string;
  /** Its value as JSON text: any key survives. */
  readonly v: string;
  /** Its version. */
  readonly n: number;
  /** When it expires. */
  readonly e: Date;
}

/** The latest moment there is: never. */
const NEVER = new Date(8.64e15);
/** A put that expects nothing starts again when the record came, or went, in between: hardly ever twice. */
const ATTEMPTS = 20;
/** Records asked for at once. */
const ANSWER = 1_000;

/** Sees to it that the server takes away what has expired, some time later. */
export async function ensureRecords(link: Link): Promise<void> {
  await ensureIndexes(link, RECORDS, [{ name: 'e', key: { e: 1 }, expireAfterSeconds: 0 }]);
}

/** The port's records. Whether one has expired is told by this process's clock. @param link to the server. */
export function createRecords(link: Link): Records {
  const records = (database: Database): ReturnType<typeof database.collection<MongoRecord>> =>
    database.collection<MongoRecord>(RECORDS);
  const alive = (): { readonly e: { readonly $gt: Date } } => ({ e: { $gt: new Date() } });

  /** The first version, where there is none or one that has expired. */
  async function create(_id: string, value: { readonly v: string; readonly e: Date }): Promise<1 | undefined> {
    return link.write(async (database) => {
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

  /** The next version of what stands there, whatever its version; `undefined`: there is none. */
  async function replace(_id: string, value: { readonly v: string; readonly e: Date }): Promise<number | undefined> {
    const changed = await link.write((database) =>
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
      const record = await link.read((database) => records(database).findOne({ _id: key, ...alive() }));
      return record === null ? undefined : recordOf<V>(record);
    },
    async put(key, value, { expected, expiresAt } = {}) {
      const next = {
        v: recordJson(key, value),
        e: expiresAt === undefined || expiresAt >= NEVER.getTime() ? NEVER : new Date(expiresAt),
      };
      if (expected === 0) return create(key, next);
      if (expected !== undefined) {
        const { matchedCount } = await link.write((database) =>
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
      return (await link.write((database) => records(database).deleteOne(filter))).deletedCount === 1;
    },
    async list<V>(prefix: string, limit?: number) {
      if (limit === 0) return [];
      const filter = { _id: prefixOf(prefix), ...alive() };
      const options = { sort: { _id: 1 as const }, batchSize: ANSWER, ...(limit === undefined ? {} : { limit }) };
      const found = await link.read((database) => records(database).find(filter, options).toArray(), BULK_MS);
      return found.map((record) => recordOf<V>(record));
    },
  };
}

function recordOf<V>({ _id, v, n, e }: MongoRecord): StoredRecord<V> {
  const record = { key: _id, value: JSON.parse(v) as V, version: n };
  return e.getTime() === NEVER.getTime() ? record : { ...record, expiresAt: e.getTime() };
}
