import { openMongoKeyStore } from '../../../src/adapters/mongodb/keyStore.js';
import type { KeyStore } from '../../../src/ports/keyStore.js';
import { startKeyStore } from './keyStoreProcess.js';
import type { KeyStoreFixture } from './keyStoreRows.js';
import { openProxy } from './eventStoreProxy.js';
import { newDatabase } from './mongoServer.js';

/** The test server looks at every document for every write: the time goes with the square. */
const TEST_SERVER_MANY = 2_000;

/**
 * Stores of a new database on a server, which is dropped. `own`: a single server, whose clients are led over a way that
 * can be cut.
 */
export async function mongoKeyFixture(url: string, own: boolean): Promise<KeyStoreFixture> {
  const database = newDatabase(url);
  const { port } = new URL(database.url);
  const way = own ? await openProxy({ port: Number(port) }) : undefined;
  const place = { url: way === undefined ? database.url : database.url.replace(`:${port}/`, `:${way.port}/`) };
  const opened: KeyStore[] = [];
  const open = async (): Promise<KeyStore> => {
    const store = await openMongoKeyStore(place);
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    elsewhere: () => startKeyStore(place),
    engine: {
      take: async () => way?.down(),
      giveBack: async () => way?.up(),
    },
    ...(own ? { many: TEST_SERVER_MANY } : {}),
    async destroy() {
      for (const store of opened) await store.close();
      await way?.close();
      await database.destroy();
    },
  };
}
