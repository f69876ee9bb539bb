/** Stores on EventStoreDB for the contract suites: on a double, or on the server that the environment names. */
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/eventStore.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { ServedFixture } from '../../contract/eventStoreOutages.js';
import { startEventStoreDouble } from './eventStoreDouble.js';
import type { Proxy } from './eventStoreProxy.js';
import { openProxy } from './eventStoreProxy.js';

/** A silent server is given up after so long, in ms, where tests are to wait for that. */
export const ABANDONED_MS = 1_000;
/** Long enough on a busy machine, too: repeats after a timeout would change the order. */
const PATIENT_MS = 20_000;

/** On a double of its own. */
export async function onDouble(timeoutMs = PATIENT_MS): Promise<ServedFixture> {
  const double = await startEventStoreDouble();
  return onWay(double.url, timeoutMs, double.way, { down: double.way.down, up: double.restart, close: double.close });
}

/**
 * On a server that others may use too: it is reached through a way of our own, which is cut instead of the server.
 * @param url `esdb://HOST:PORT`, with credentials and options
 */
export async function onServer(url: string, timeoutMs = PATIENT_MS): Promise<ServedFixture> {
  const [address, host, port] = /(?<=:\/\/(?:[^@/]*@)?)([^:/@,?]+):(\d+)/.exec(url) ?? [];
  if (address === undefined) throw new Error(`TEST_EVENTSTORE_URL names no host and port: ${url}`);
  const way = await openProxy({ host: host!, port: Number(port) });
  return onWay(url.replace(address, `127.0.0.1:${way.port}`), timeoutMs, way, {
    down: way.down,
    up: way.up,
    close: way.close,
  });
}

async function onWay(
  url: string,
  timeoutMs: number,
  way: Proxy,
  server: { down: () => Promise<void>; up: () => Promise<void>; close: () => Promise<void> },
): Promise<ServedFixture> {
  const opened: EventStore[] = [];
  const open = async (): Promise<EventStore> => {
    const store = await openEventStoreDb({ url, timeoutMs });
    opened.push(store);
    return store;
  };
  return {
    store: await open(),
    reopen: open,
    timeoutMs,
    server: { down: server.down, up: server.up, freeze: way.freeze, thaw: way.thaw },
    async destroy() {
      for (const store of opened) await store.close();
      await server.close();
    },
  };
}
