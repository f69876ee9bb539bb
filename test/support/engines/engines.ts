/**
 * The engines that services of tests run on: TEST_ENGINES lists `eventstoredb`, `mongodb`, `nats`, or is `all`; the
 * others are embedded.
 * - `nats`: the server at TEST_NATS_URL, or a `nats-server` of our own.
 * - `mongodb`: a database of its own on the server at TEST_MONGODB_URL, or on a test server of our own.
 * - `eventstoredb`: a fresh one for each set of engines, started by the command in TEST_EVENTSTORE_START (called with a
 * free port and an empty folder; it serves without TLS), or the double. Clients and servers are loaded only where they
 * are chosen: most tests start sooner without.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An engine that is not embedded. */
export type ServerEngine = 'eventstoredb' | 'mongodb' | 'nats';

const SERVERS: readonly ServerEngine[] = ['eventstoredb', 'mongodb', 'nats'];

/** The engines of one installation. */
export interface TestEngines {
  /** Those that are servers. */
  readonly servers: ReadonlySet<ServerEngine>;
  /** The service's settings for them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Ends the servers and removes their data. */
  close(): Promise<void>;
}

/** The embedded ones alone, whatever TEST_ENGINES says. */
export const EMBEDDED: TestEngines = { servers: new Set(), settings: {}, close: async () => undefined };

/** With an EventStoreDB nothing is made up (docs/deployment.md#engines-of-your-own): keys and providers are said. */
const SAID = {
  TOKEN_KEY: 'the key that signs the access tokens of tests',
  HASH_KEY: 'the key of the hashes in the stream names of tests',
  MASTER_KEY: 'the key that wraps the secrets of the key store of tests',
  SEAL_KEY: 'the key that signs the heads of the tree of tests',
  KEYS_URL: 'embedded',
  PAYMENTS: 'simulated',
  NOTIFICATIONS: 'simulated',
};
/** Which engines are to be servers. @throws Error for a name that is none */
export function chosenServers(list = process.env['TEST_ENGINES'] ?? ''): ReadonlySet<ServerEngine> {
  if (list === 'all') return new Set(SERVERS);
  const chosen = new Set<ServerEngine>();
  for (const name of list.split(',').filter((one) => one !== '' && one !== 'embedded')) {
    const server = SERVERS.find((one) => one === name);
    if (server === undefined)
      throw new Error(`TEST_ENGINES is a list of ${SERVERS.join(', ')}, or all, not ${JSON.stringify(name)}`);
    chosen.add(server);
  }
  return chosen;
}

/** Starts the engines of one installation; by default those that TEST_ENGINES chooses. */
export async function openTestEngines(servers: ReadonlySet<ServerEngine> = chosenServers()): Promise<TestEngines> {
  const settings: Record<string, string> = {};
  const closers: (() => Promise<void>)[] = [];
  if (servers.has('nats')) {
    const { startNats } = await import('./natsServer.js');
    const server = await startNats();
    settings['NATS_URL'] = server.url;
    closers.push(server.stop);
  }
  if (servers.has('mongodb')) {
    const [reads, keys] = [await ownDatabase(), await ownDatabase()];
    Object.assign(settings, { MONGODB_URL: reads.url, KEYS_URL: keys.url });
    closers.push(reads.close, keys.close);
  }
  if (servers.has('eventstoredb')) {
    const { url, close } = await ownEventStore();
    Object.assign(settings, { ...SAID, ...settings, EVENTSTORE_URL: url });
    closers.push(close);
  }
  return {
    servers,
    settings,
    async close() {
      for (const close of closers.toReversed()) await close();
    },
  };
}

interface Started {
  readonly url: string;
  close(): Promise<void>;
}

async function ownDatabase(): Promise<Started> {
  const given = process.env['TEST_MONGODB_URL'] ?? '';
  const name = `gift_${randomUUID().slice(0, 8)}`;
  if (given === '') {
    const { startMongo } = await import('./mongoServer.js');
    const server = await startMongo();
    return { url: `${server.url}${name}`, close: server.stop };
  }
  const url = given.replace(/^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${name}`);
  return {
    url,
    async close() {
      const { MongoClient } = await import('mongodb');
      const client = new MongoClient(url);
      await client.db().dropDatabase();
      await client.close();
    },
  };
}

async function ownEventStore(): Promise<Started> {
  const command = process.env['TEST_EVENTSTORE_START'] ?? '';
  if (command === '') {
    const { startEventStoreDouble } = await import('./eventStoreDouble.js');
    const { url, close } = await startEventStoreDouble();
    return { url, close };
  }
  const { startEventStoreServer } = await import('./eventStoreServer.js');
  const dir = await mkdtemp(join(tmpdir(), 'gift-eventstore-'));
  const { url, stop } = await startEventStoreServer(command, dir);
  return {
    url,
    async close() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
