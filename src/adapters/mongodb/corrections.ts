/** Documents put right by compare-and-set of their positions: one command each, decided by the server. */
import type { CollectionSpec, Correction } from '../../ports/readStore.js';
import { refuseTooMany } from '../readStoreRules.js';
import { isDuplicateId } from './failures.js';
import { layoutOf, valuesOf } from './layout.js';
import type { Layout, MongoDocument } from './layout.js';
import type { Link } from './connection.js';

/** As the port's `correct`. */
export async function correctDocuments(
  link: Link,
  collection: CollectionSpec,
  corrections: readonly Correction[],
): Promise<boolean[]> {
  refuseTooMany(collection, corrections, 'corrections');
  const layout = layoutOf(collection);
  const made: boolean[] = [];
  for (const correction of corrections) made.push(await correct(link, layout, correction));
  return made;
}

async function correct(link: Link, layout: Layout, { id, expected, document }: Correction): Promise<boolean> {
  const filter = { _id: id, ...(expected === undefined ? {} : { p: expected }) };
  const next =
    document === undefined
      ? undefined
      : { p: document.position, b: JSON.stringify(document.body), ...valuesOf(layout.fields, document.body) };
  if (next === undefined && expected === undefined) {
    return (
      (await link.read((database) =>
        database.collection<MongoDocument>(layout.collection).findOne({ _id: id }, { projection: { p: 1 } }),
      )) === null
    );
  }
  return link.write(async (database) => {
    const documents = database.collection<MongoDocument>(layout.collection);
    if (next === undefined) return (await documents.deleteOne(filter)).deletedCount === 1;
    if (expected !== undefined) return (await documents.replaceOne(filter, next)).matchedCount === 1;
    try {
      await documents.insertOne({ _id: id, ...next });
      return true;
    } catch (error) {
      if (isDuplicateId(error)) return false;
      throw error;
    }
  });
}
