import { MongoClient, type UpdateFilter } from 'mongodb';
import { type MongoDocument, keyOf, layoutOf } from '../../../src/adapters/mongodb/layout.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import type { CollectionSpec, ReadStore } from '../../../src/ports/readStore.js';
import type { ReadStoreFixture } from './readStoreDocuments.js';

/** Stores of the database at `url`, which stays. `many`: see the fixture's. */
export async function mongoFixture(url: string, many?: number): Promise<ReadStoreFixture> {
  const opened: ReadStore[] = [];
  const open = async (): Promise<ReadStore> => {
    const store = await openMongoReadStore({ url });
    opened.push(store);
    return store;
  };
  const alter = async (collection: CollectionSpec, id: string, update: UpdateFilter<MongoDocument>): Promise<void> => {
    const client = await MongoClient.connect(url);
    const { matchedCount } = await client
      .db()
      .collection<MongoDocument>(layoutOf(collection).collection)
      .updateOne({ _id: id }, update);
    await client.close();
    if (matchedCount !== 1) throw new Error(`there is no document ${id}`);
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    damage: (collection, id, body) => alter(collection, id, { $set: { b: body } }),
    misindex: (collection, id, field, value) =>
      alter(collection, id, value === null ? { $unset: { [keyOf(field)]: '' } } : { $set: { [keyOf(field)]: value } }),
    ...(many === undefined ? {} : { many }),
    async destroy() {
      for (const store of opened) await store.close();
    },
  };
}
