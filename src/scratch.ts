/** Read stores for a short time: a verification's copy is made beside what serves, in files of its own, so that neither waits for the other. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedReadStore } from './adapters/embedded/readStore.js';
import type { ReadStore } from './ports/readStore.js';

const PREFIX = 'verify-';
/** What a killed process has left is removed after so long, in ms. */
const LEFT_MS = 86_400_000;

/** A read store that goes when it is closed. */
export interface Scratch {
  readonly store: ReadStore;
  close(): Promise<void>;
}

/** Opens an empty one in a folder of its own in the data folder. @throws UnavailableError when the disk is full; Error when nothing can be made there */
export async function openScratch(dataDir: string): Promise<Scratch> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(dataDir)) {
    const left = join(dataDir, name);
    if (name.startsWith(PREFIX) && Date.now() - statSync(left).mtimeMs > LEFT_MS) rmSync(left, { recursive: true, force: true });
  }
  const dir = mkdtempSync(join(dataDir, PREFIX));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    const store = await openEmbeddedReadStore({ dir });
    return {
      store,
      async close() {
        await store.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}
