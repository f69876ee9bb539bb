import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KEY_STORE_FILE } from '../../../src/adapters/embedded/keyStore/file.js';
import { openEmbeddedKeyStore } from '../../../src/adapters/embedded/keyStore/keyStore.js';
import type { KeyStore } from '../../../src/ports/keyStore.js';
import { startKeyStore } from './keyStoreProcess.js';
import type { KeyStoreFixture } from './keyStoreRows.js';
import { textsInDatabase } from './textsInDatabase.js';

/** A new folder of its own. */
export function newKeyFolder(): string {
  return mkdtempSync(join(tmpdir(), 'gift-key-store-'));
}

/** Which of these texts stand in the files of the store in `dir`, wholly or in part (from 21 characters on). */
export function textsInFiles(dir: string, texts: readonly string[]): readonly string[] {
  return textsInDatabase(join(dir, KEY_STORE_FILE), texts);
}

/** An embedded store in a folder of its own, which is removed at the end. */
export async function embeddedKeyFixture(): Promise<KeyStoreFixture> {
  const dir = newKeyFolder();
  const file = join(dir, KEY_STORE_FILE);
  const opened: KeyStore[] = [];
  const open = async (): Promise<KeyStore> => {
    const store = await openEmbeddedKeyStore({ dir });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    elsewhere: () => startKeyStore({ dir }),
    engine: {
      take: async () => renameSync(file, `${file}.aside`),
      giveBack: async () => renameSync(`${file}.aside`, file),
    },
    textsInFiles: (texts) => textsInFiles(dir, texts),
    async destroy() {
      for (const store of opened) await store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
