/** The simulated engines keep the guarantees of their ports, without faults and in the real world. */
import { randomUUID } from 'node:crypto';
import type { KeyStore } from '../../src/ports/keyStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { busContract } from '../contract/bus.js';
import { eventStoreContract } from '../contract/eventStore.js';
import { eventStoreSealContract } from '../contract/eventStoreSeal.js';
import { keyStoreContract } from '../contract/keyStore.js';
import { readStoreContract } from '../contract/readStore.js';
import { type KeyStoreLoad, type KeyStoreProcess, newRows } from '../support/engines/keyStoreRows.js';
import { busRouter, openSimulatedBus } from './engines/bus.js';
import { eventLog } from './engines/eventLog.js';
import { openSimulatedEvents } from './engines/eventStore.js';
import { openSimulatedKeys } from './engines/keyStore.js';
import { openSimulatedReadStore, readStoreDisk } from './engines/readStore.js';
import { subjectRows } from './engines/subjectRows.js';
import { IMMEDIATE, type Link } from './world/link.js';

eventStoreContract('simulated', async () => {
  const log = eventLog(randomUUID());
  const opened = [openSimulatedEvents(log, IMMEDIATE)];
  return {
    store: opened[0]!,
    async reopen() {
      const again = openSimulatedEvents(log, IMMEDIATE);
      opened.push(again);
      return again;
    },
    async destroy() {
      for (const store of opened) await store.close();
    },
  };
});

eventStoreSealContract('simulated', async () => {
  const log = eventLog(randomUUID());
  const [store, other] = [openSimulatedEvents(log, IMMEDIATE), openSimulatedEvents(log, IMMEDIATE)];
  return {
    store,
    other,
    async destroy() {
      await store.close();
      await other.close();
    },
  };
});

readStoreContract('simulated', async () => {
  const disk = readStoreDisk();
  const open = async () => openSimulatedReadStore(disk, IMMEDIATE);
  const row = (...found: Parameters<typeof disk.documents.row>) => {
    const present = disk.documents.row(...found);
    if (present === undefined) throw new Error('there is no such document');
    return present;
  };
  return {
    store: await open(),
    reopen: open,
    second: open,
    async damage(collection, id, body) {
      row(collection, id).body = body;
    },
    async misindex(collection, id, field, value) {
      row(collection, id).values.set(field, value);
    },
    destroy: async () => undefined,
  };
});

keyStoreContract('simulated', async () => {
  const rows = subjectRows();
  let away = false;
  const link: Link = {
    ...IMMEDIATE,
    async call(requested) {
      if (away) throw new UnavailableError('the key store is away');
      return IMMEDIATE.call(requested);
    },
  };
  const open = async () => openSimulatedKeys(rows, link);
  return {
    store: await open(),
    reopen: open,
    second: open,
    elsewhere: async () => elsewhere(await open()),
    engine: { take: async () => void (away = true), giveBack: async () => void (away = false) },
    destroy: async () => undefined,
  };
});

/** Another client, which works until it is killed. */
function elsewhere(store: KeyStore): KeyStoreProcess {
  let alive = true;
  return {
    add: store.add,
    byLookup: store.byLookup,
    fence: store.fence,
    putErasure: store.putErasure,
    remove: store.remove,
    rewrap: store.rewrap,
    unfence: store.unfence,
    load(group) {
      const load: KeyStoreLoad = { added: [], removed: [] };
      void (async () => {
        while (alive) {
          const [stay, go] = [newRows(group), newRows(group)];
          await store.add([...stay, ...go]);
          if (!alive) return;
          load.added.push(...stay);
          await store.remove(go.map(({ id }) => id));
          if (!alive) return;
          load.removed.push(...go);
          await new Promise(setImmediate);
        }
      })();
      return load;
    },
    async kill() {
      alive = false;
    },
  };
}

busContract('simulated', async () => {
  const router = busRouter();
  const clients = [openSimulatedBus(router, IMMEDIATE, () => undefined)];
  return {
    bus: clients[0]!,
    async second() {
      const client = openSimulatedBus(router, IMMEDIATE, () => undefined);
      clients.push(client);
      return client;
    },
    async destroy() {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
});
