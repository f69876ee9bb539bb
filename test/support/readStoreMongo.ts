import { openMongoReadStore } from '../../src/adapters/mongodb.js';
import type { ReadStore } from '../../src/ports/readStore.js';
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
    ...(many === undefined ? {} : { many }),
    async destroy() {
      for (const store of opened) await store.close();
    },
  };
}
