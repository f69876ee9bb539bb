import type { CollectionSpec, Correction } from '../../ports/readStore.js';
import { refuseTooMany } from '../readStoreRules.js';
import { isDuplicateId } from './failures.js';
import { layoutOf, valuesOf, type Layout, type MongoDocument } from './layout.js';
import type { Connection } from './connection.js';

export async function correctDocuments(
  connection: Connection,
  collection: CollectionSpec,
  corrections: readonly Correction[],
): Promise<boolean[]> {
  refuseTooMany(collection, corrections, 'corrections');
  const layout = layoutOf(collection);
  const made: boolean[] = [];
  for (const correction of corrections) made.push(await correct(connection, layout, correction));
  return made;
}

async function correct(
  connection: Connection,
  layout: Layout,
  { id, expected, document }: Correction,
): Promise<boolean> {
  const filter = { _id: id, ...(expected === undefined ? {} : { p: expected }) };
  const next =
    document === undefined
      ? undefined
      : { p: document.position, b: JSON.stringify(document.body), ...valuesOf(layout.fields, document.body) };
  if (next === undefined && expected === undefined) {
    return (
      (await connection.read((database) =>
        database.collection<MongoDocument>(layout.collection).findOne({ _id: id }, { projection: { p: 1 } }),
      )) === null
    );
  }
  return connection.write(async (database) => {
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
