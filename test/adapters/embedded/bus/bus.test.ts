import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedBus } from '../../../../src/adapters/embedded/bus/bus.js';
import type { Bus } from '../../../../src/ports/bus.js';
import { busContract } from '../../../contract/bus.js';
import { openBusInProcess } from '../../../support/engines/busProcess.js';

busContract('embedded, in one process', () => opened((dir) => openEmbeddedBus({ dir, onError: () => undefined })));
busContract('embedded, in two processes', () => opened((dir) => openBusInProcess({ dir })));
busContract('embedded, the broker in another process', async () => {
  const under = await opened(
    (dir) => openEmbeddedBus({ dir, onError: () => undefined }),
    (dir) => openBusInProcess({ dir }),
  );
  return under;
});

async function opened(
  openSecond: (dir: string) => Promise<Bus>,
  openFirst: (dir: string) => Promise<Bus> = (dir) => openEmbeddedBus({ dir, onError: () => undefined }),
) {
  const dir = await mkdtemp(join(tmpdir(), 'bus-'));
  const clients = [await openFirst(dir)];
  return {
    bus: clients[0] as Bus,
    async second() {
      const client = await openSecond(dir);
      clients.push(client);
      return client;
    },
    async destroy() {
      await Promise.all(clients.map((client) => client.close()));
      await rm(dir, { recursive: true });
    },
  };
}
