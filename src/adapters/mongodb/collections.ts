/** Makes and drops collections with their indexes. */
import { EngineError } from '../../lib/engineError.js';
import { versionsAmong } from '../readStoreRules.js';
import { storedBodyOf } from '../storedBody.js';
import { isMissing, isPresent } from './failures.js';
import { CHECKPOINTS, META, valuesOf } from './layout.js';
import type { FieldKey, Layout, MongoDocument, MongoIndex } from './layout.js';
import { BULK_MS, INDEX_MS } from './connection.js';
import type { Database, Link } from './connection.js';

/** Which fields stand beside the bodies of all documents of a collection. */
interface FieldsMeta {
  readonly _id: string;
  readonly fields: readonly string[];
}

/** Documents looked through at once. */
const PAGE = 1_000;

/**
 * Makes the collection where it is missing, brings the fields that indexes name beside the bodies of documents written
 * without them, and, unless `deferIndexes`, makes the indexes.
 * @throws EngineError when one of an index's name stands there that is not as declared.
 */
export async function ensureCollection(link: Link, layout: Layout, deferIndexes: boolean): Promise<void> {
  await link.write(async ({ db }) => db.createCollection(layout.collection).catch(ignoring(isPresent)), BULK_MS);
  const _id = metaIdOf(layout);
  const known = await link.read((database) => database.collection<FieldsMeta>(META).findOne({ _id }));
  const missing = layout.fields.filter(({ field }) => known === null || !known.fields.includes(field));
  if (missing.length > 0) {
    await extract(link, layout, missing);
    const fields = missing.map(({ field }) => field);
    await link.write((database) =>
      database
        .collection<FieldsMeta>(META)
        .updateOne({ _id }, { $addToSet: { fields: { $each: fields } } }, { upsert: true }),
    );
  }
  if (!deferIndexes) await ensureIndexes(link, layout.collection, layout.indexes);
}

/** Drops the collection and its checkpoint, the checkpoint first: it never stands for documents that are gone. */
export async function dropCollection(link: Link, layout: Layout): Promise<void> {
  await link.write((database) => database.collection<{ _id: string }>(CHECKPOINTS).deleteOne({ _id: layout.name }));
  await link.write(({ db }) => db.collection(layout.collection).drop().catch(ignoring(isMissing)), BULK_MS);
  await link.write((database) => database.collection<FieldsMeta>(META).deleteOne({ _id: metaIdOf(layout) }));
}

/** The versions of a collection that are there, from the lowest. */
export async function versionsOf(link: Link, name: string): Promise<number[]> {
  const found = await link.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  return versionsAmong(
    found.map((one) => one.name),
    name,
  );
}

/** An index and, where it makes documents expire, after how many seconds past the date in it. */
export type WantedIndex = MongoIndex & { readonly expireAfterSeconds?: number };

/** Makes indexes and sees that they are there as wanted. @throws EngineError when one of the same name is not. */
export async function ensureIndexes(link: Link, collection: string, wanted: readonly WantedIndex[]): Promise<void> {
  if (wanted.length === 0) return;
  const present = await listed(link, collection);
  const lacking = wanted.filter(({ name }) => !present.has(name));
  if (lacking.length > 0)
    await link.write(
      (database) =>
        database.db.collection(collection).createIndexes(lacking.map((index) => ({ ...index, key: { ...index.key } }))),
      INDEX_MS,
    );
  const made = lacking.length > 0 ? await listed(link, collection) : present;
  for (const index of wanted) {
    const found = made.get(index.name);
    if (found === undefined || !isAsWanted(found, index)) {
      throw new EngineError(
        'MONGODB_URL',
        `index ${index.name} of collection ${collection} is not as it was made: drop it, and it is made anew at the next start`,
      );
    }
  }
}

async function listed(link: Link, collection: string): Promise<Map<string, Record<string, unknown>>> {
  const indexes = await link.read(async (database: Database) =>
    database.db.collection(collection).indexes().catch(ignoring(isMissing)),
  );
  return new Map((indexes ?? []).map((index) => [String(index.name), index as Record<string, unknown>]));
}

function isAsWanted(found: Record<string, unknown>, { key, expireAfterSeconds }: WantedIndex): boolean {
  const hides = ['unique', 'sparse', 'hidden', 'partialFilterExpression', 'collation'].some(
    (option) => option in found && found[option] !== false,
  );
  return (
    !hides && JSON.stringify(found['key']) === JSON.stringify(key) && found['expireAfterSeconds'] === expireAfterSeconds
  );
}

/**
 * Takes the fields' values out of the bodies that are there. A document written meanwhile has them already, or is left
 * as it is.
 */
async function extract(link: Link, { collection }: Layout, fields: readonly FieldKey[]): Promise<void> {
  for (let after: string | undefined; ;) {
    const filter = after === undefined ? {} : { _id: { $gt: after } };
    const page = await link.read(
      (database) =>
        database
          .collection<MongoDocument>(collection)
          .find(filter, { sort: { _id: 1 }, limit: PAGE, batchSize: PAGE })
          .toArray(),
      BULK_MS,
    );
    const updates = page.flatMap(({ _id, p, b }) => {
      const values = valuesOf(fields, storedBodyOf(b));
      return Object.keys(values).length === 0 ? [] : [{ updateOne: { filter: { _id, p }, update: { $set: values } } }];
    });
    if (updates.length > 0)
      await link.write(
        (database) => database.collection<MongoDocument>(collection).bulkWrite(updates, { ordered: false }),
        BULK_MS,
      );
    after = page.at(-1)?._id;
    if (after === undefined || page.length < PAGE) return;
  }
}

function metaIdOf(layout: Layout): string {
  return `fields/${layout.name}`;
}

/** Takes what is expected for nothing, and throws the rest. */
function ignoring(expected: (error: unknown) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!expected(error)) throw error;
    return undefined;
  };
}
