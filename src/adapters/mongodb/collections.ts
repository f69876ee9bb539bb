import { EngineError } from '../../lib/engineError.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { versionsAmong } from '../readStoreRules.js';
import { storedBodyOf } from '../storedBody.js';
import type { MongoStore } from './address.js';
import { isMissing, isPresent } from './failures.js';
import { pagesById } from './finds.js';
import {
  CHECKPOINTS,
  META,
  valuesOf,
  type FieldKey,
  type Layout,
  type MongoDocument,
  type MongoIndex,
} from './layout.js';
import { BULK_MS, INDEX_MS, type Database, type Connection } from './connection.js';

interface FieldsMeta {
  readonly _id: string;
  readonly fields: readonly string[];
}

/**
 * Creates a collection and its indexes. Also extracts newly indexed fields of stored documents.
 * @throws EngineError when an index of the same name differs
 */
export async function ensureCollection(connection: Connection, layout: Layout, deferIndexes: boolean): Promise<void> {
  await connection.write(async ({ db }) => db.createCollection(layout.collection).catch(ignoring(isPresent)), BULK_MS);
  const _id = metaIdOf(layout);
  const known = await connection.read((database) => database.collection<FieldsMeta>(META).findOne({ _id }));
  const missing = layout.fields.filter(({ field }) => known === null || !known.fields.includes(field));
  if (missing.length > 0) await extract(connection, layout, missing);
  // Before the fields are noted: without indexes, a collection in use with noted fields looks as one that was dropped.
  if (!deferIndexes) await ensureIndexes(connection, layout.collection, layout.indexes);
  const fields = missing.map(({ field }) => field);
  if (fields.length > 0)
    await connection.write((database) =>
      database
        .collection<FieldsMeta>(META)
        .updateOne({ _id }, { $addToSet: { fields: { $each: fields } } }, { upsert: true }),
    );
}

/**
 * Whether a person has dropped a collection whose checkpoint says that it is complete. Where something was written
 * since, MongoDB has created it again, without the indexes that the collection in use had.
 * @param serves whether the collection is in use
 */
export async function isLost(connection: Connection, layout: Layout, serves: boolean): Promise<boolean> {
  const [checkpoint, fields] = await connection.read((database) =>
    Promise.all([
      database.collection<{ _id: string }>(CHECKPOINTS).findOne({ _id: layout.name }),
      database.collection<FieldsMeta>(META).findOne({ _id: metaIdOf(layout) }),
    ]),
  );
  if (checkpoint === null) return false;
  const present = await listed(connection, layout.collection);
  if (present.size === 0) return true;
  const hadIndexes = serves && layout.fields.every(({ field }) => fields?.fields.includes(field) === true);
  return hadIndexes && layout.indexes.length > 0 && !layout.indexes.some(({ name }) => present.has(name));
}

/** Drops a collection, its checkpoint first: the checkpoint must not outlive the documents. */
export async function dropCollection(connection: Connection, layout: Layout): Promise<void> {
  await connection.write((database) =>
    database.collection<{ _id: string }>(CHECKPOINTS).deleteOne({ _id: layout.name }),
  );
  await connection.write(({ db }) => db.collection(layout.collection).drop().catch(ignoring(isMissing)), BULK_MS);
  await connection.write((database) => database.collection<FieldsMeta>(META).deleteOne({ _id: metaIdOf(layout) }));
}

export async function versionsOf(connection: Connection, name: string): Promise<number[]> {
  const found = await connection.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  return versionsAmong(
    found.map((one) => one.name),
    name,
  );
}

type RequiredIndex = MongoIndex & {
  /** Seconds after the indexed date at which documents expire. */
  readonly expireAfterSeconds?: number;
  readonly unique?: true;
};

/** @throws EngineError when an index of the same name differs */
export async function ensureIndexes(
  connection: Connection,
  collection: string,
  required: readonly RequiredIndex[],
): Promise<void> {
  if (required.length === 0) return;
  const present = await listed(connection, collection);
  const lacking = required.filter(({ name }) => !present.has(name));
  if (lacking.length > 0)
    await connection.write(
      (database) =>
        database.db.collection(collection).createIndexes(lacking.map((index) => ({ ...index, key: { ...index.key } }))),
      INDEX_MS,
    );
  const made = lacking.length > 0 ? await listed(connection, collection) : present;
  for (const index of required) {
    const found = made.get(index.name);
    if (found === undefined || !isAsRequired(found, index)) {
      throw new EngineError(
        connection.store.setting,
        `index ${index.name} of collection ${collection} is not as it was made: drop it, and it is made anew at the next start`,
      );
    }
  }
}

/**
 * Checks that a collection is there still, with its indexes. A server may come back without its data, such as on an empty
 * volume, or a person may have dropped something: nothing would be found then, and what is written would be lost once
 * the data is back.
 * @throws UnavailableError
 */
export async function refuseIfGone(
  database: Database,
  { name }: MongoStore,
  collection: string,
  required: readonly RequiredIndex[],
): Promise<void> {
  const present = await indexesOf(database, collection);
  for (const index of required) {
    const found = present.get(index.name);
    if (found !== undefined && isAsRequired(found, index)) continue;
    throw lost(
      present.size === 0
        ? dataLost(name)
        : `the ${name} has lost the index ${index.name} of collection ${collection}: a process that starts makes it anew`,
    );
  }
}

/**
 * Checks that a collection has a document, where it is known to have had one (`before`). A process that starts makes an
 * empty collection with its indexes, before it finds that it does not fit the log.
 * @returns whether it has one
 * @throws UnavailableError
 */
export async function refuseIfEmptied(
  { db }: Database,
  { name }: MongoStore,
  collection: string,
  before: boolean,
): Promise<boolean> {
  const isFilled = (await db.collection(collection).findOne({}, { projection: { _id: 1 } })) !== null;
  if (before && !isFilled) throw lost(dataLost(name));
  return isFilled;
}

const dataLost = (store: string): string => `the ${store} has lost its data: put it back, or stop the service`;

const lost = (message: string): UnavailableError =>
  new UnavailableError(message, { publicReason: 'has lost its data, or an index' });

async function listed(connection: Connection, collection: string): Promise<Map<string, Record<string, unknown>>> {
  return connection.read(async (database) => indexesOf(database, collection));
}

async function indexesOf({ db }: Database, collection: string): Promise<Map<string, Record<string, unknown>>> {
  const indexes = await db.collection(collection).indexes().catch(ignoring(isMissing));
  return new Map((indexes ?? []).map((index) => [String(index.name), index as Record<string, unknown>]));
}

function isAsRequired(found: Record<string, unknown>, { key, expireAfterSeconds, unique }: RequiredIndex): boolean {
  const hides = ['sparse', 'hidden', 'partialFilterExpression', 'collation'].some(
    (option) => option in found && found[option] !== false,
  );
  return (
    !hides &&
    (found['unique'] === true) === (unique === true) &&
    JSON.stringify(found['key']) === JSON.stringify(key) &&
    found['expireAfterSeconds'] === expireAfterSeconds
  );
}

/** Adds newly indexed fields to stored documents. A document written concurrently has its fields already. */
async function extract(connection: Connection, { collection }: Layout, fields: readonly FieldKey[]): Promise<void> {
  for await (const page of pagesById<MongoDocument>(connection, collection)) {
    const updates = page.flatMap(({ _id, p, b }) => {
      const values = valuesOf(fields, storedBodyOf(b));
      return Object.keys(values).length === 0 ? [] : [{ updateOne: { filter: { _id, p }, update: { $set: values } } }];
    });
    if (updates.length > 0)
      await connection.write(
        (database) => database.collection<MongoDocument>(collection).bulkWrite(updates, { ordered: false }),
        BULK_MS,
      );
  }
}

function metaIdOf(layout: Layout): string {
  return `fields/${layout.name}`;
}

function ignoring(expected: (error: unknown) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!expected(error)) throw error;
    return undefined;
  };
}
