import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KEY_STORE_FILE } from '../../../src/adapters/embedded/keyStore/file.js';
import { openEmbeddedKeyStore } from '../../../src/adapters/embedded/keyStore/keyStore.js';
import type { KeyStore } from '../../../src/ports/keyStore.js';
import { startKeyStore } from './keyStoreProcess.js';
import type { KeyStoreFixture } from './keyStoreRows.js';

const MAX_FILE_BYTES = 100_000_000;

/** A new folder of its own. */
export function newKeyFolder(): string {
  return mkdtempSync(join(tmpdir(), 'gift-key-store-'));
}

/** Characters of a piece that is looked for: pieces of random texts are never equal by chance. */
const PIECE = 11;

/** Which of these texts stand in the files of the store in `dir`, wholly or in part (from 21 characters on). */
export function textsInFiles(dir: string, texts: readonly string[]): readonly string[] {
  const textOf = new Map<string, string>();
  for (const text of texts)
    for (let at = 0; at + PIECE <= text.length; at += PIECE) textOf.set(text.slice(at, at + PIECE), text);
  const found = new Set<string>();
  for (const ending of ['', '-wal', '-shm', '-journal']) {
    const file = join(dir, KEY_STORE_FILE + ending);
    if (!existsSync(file)) continue;
    // Closing a file drops this process's locks of it, so another process reads it.
    const content = execFileSync('cat', [file], { encoding: 'latin1', maxBuffer: MAX_FILE_BYTES });
    for (let at = 0; at + PIECE <= content.length; at++) {
      const text = textOf.get(content.slice(at, at + PIECE));
      if (text !== undefined) found.add(text);
    }
  }
  return [...found];
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
