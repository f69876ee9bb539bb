import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import type { EventStore } from '../../../src/ports/eventStore.js';

/** A data folder of a test's own. */
export interface Folder {
  readonly dir: string;
  /** Opens the log in it; closed by `remove`. */
  readonly open: () => Promise<EventStore>;
  /** Closes what was opened and removes the folder. */
  readonly remove: () => Promise<void>;
}

/** A new, empty data folder. */
export function newFolder(): Folder {
  const dir = mkdtempSync(join(tmpdir(), 'gift-events-'));
  const opened: EventStore[] = [];
  return {
    dir,
    async open() {
      const store = await openEmbeddedEventStore({ dir });
      opened.push(store);
      return store;
    },
    async remove() {
      for (const store of opened) await store.close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** Runs a test in a folder of its own. */
export async function inFolder(test: (folder: Folder) => Promise<void>): Promise<void> {
  const folder = newFolder();
  try {
    await test(folder);
  } finally {
    await folder.remove();
  }
}

/** Uses the log of a data folder, and closes it in any case. */
export async function withLogIn<T>(dir: string, use: (log: EventStore) => Promise<T>): Promise<T> {
  const log = await openEmbeddedEventStore({ dir });
  try {
    return await use(log);
  } finally {
    await log.close();
  }
}
