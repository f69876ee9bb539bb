import { MongoClient } from 'mongodb';
import { type MongoDocument, layoutOf } from '../../../src/adapters/mongodb/layout.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import type { ReadStoreFixture } from './readStoreDocuments.js';

/** Stores of the database at `url`, which stays. `many`: see the fixture's. */
export async function mongoFixture(url: string, many?: number): Promise<ReadStoreFixture> {
  const opened: ReadStore[] = [];
  const open = async (): Promise<ReadStore> => {
    const store = await openMongoReadStore({ url });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    async damage(collection, id, body) {
      const client = await MongoClient.connect(url);
      const { matchedCount } = await client
        .db()
        .collection<MongoDocument>(layoutOf(collection).collection)
        .updateOne({ _id: id }, { $set: { b: body } });
      await client.close();
      if (matchedCount !== 1) throw new Error(`there is no document ${id}`);
    },
    ...(many === undefined ? {} : { many }),
    async destroy() {
      for (const store of opened) await store.close();
    },
  };
}
