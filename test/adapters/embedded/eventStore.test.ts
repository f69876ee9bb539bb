import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { eventStoreContract } from '../../contract/eventStore.js';

eventStoreContract('embedded', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-events-'));
  const opened: EventStore[] = [];
  const open = async (): Promise<EventStore> => {
    const store = await openEmbeddedEventStore({ dir });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    async destroy() {
      for (const store of opened) await store.close();
      rmSync(dir, { recursive: true });
    },
  };
});
