import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { READ_STORE_FILE } from '../../../src/adapters/embedded/readStore/file.js';
import { layoutOf } from '../../../src/adapters/embedded/readStore/layout.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { textsInDatabase } from './textsInDatabase.js';
import type { ReadStoreFixture } from './readStoreDocuments.js';

/** A new folder of its own. */
export async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'gift-read-store-'));
}

/** An embedded store in a folder of its own, or in the one given, which is removed at the end. */
export async function embeddedFixture(folder?: string): Promise<ReadStoreFixture> {
  const dir = folder ?? (await newFolder());
  const opened: ReadStore[] = [];
  const open = async (): Promise<ReadStore> => {
    const store = await openEmbeddedReadStore({ dir });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    async damage(collection, id, body) {
      const file = new Sqlite(join(dir, READ_STORE_FILE));
      file.prepare(`UPDATE ${layoutOf(collection).table} SET body = ? WHERE id = ?`).run(body, id);
      file.close();
    },
    async misindex(collection, id, field, value) {
      const { table, columns } = layoutOf(collection);
      const { column } = columns.find((one) => one.field === field)!;
      const file = new Sqlite(join(dir, READ_STORE_FILE));
      file.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`).run(value, id);
      file.close();
      // Reads of one turn share a snapshot.
      await nextTurn();
    },
    textsInFiles: (texts) => textsInDatabase(join(dir, READ_STORE_FILE), texts),
    async destroy() {
      for (const store of opened) await store.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
