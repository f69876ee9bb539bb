/** A MongoDB for tests: the test server beside the project, on a free port of the loopback address, or any at TEST_MONGODB_URL. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { freePort, killed } from './serverProcess.js';

const START = fileURLToPath(new URL('../../../../shared/engines/mongodb/start', import.meta.url));

/** A test server of our own. */
export interface MongoServer {
  /** Ends with `/`: a database's name may follow. */
  readonly url: string;
  /** Sends it a signal. */
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void;
  /** Starts it again on the same port with what it had stored, once it has ended. */
  restart(): Promise<void>;
  /** Ends it and removes what it had stored. */
  stop(): Promise<void>;
}

/** Why no server of our own can be had; `undefined`: one can. */
export function mongoMissing(): string | undefined {
  if (!existsSync(START)) return 'the MongoDB test server is not beside this folder';
  return spawnSync('java', ['-version']).error === undefined ? undefined : 'the MongoDB test server needs Java';
}

/** Starts a server. `durable`: what it acknowledged survives its being killed. */
export async function startMongo({ durable = false }: { readonly durable?: boolean } = {}): Promise<MongoServer> {
  const port = await freePort();
  const dir = durable ? await mkdtemp(join(tmpdir(), 'gift-mongo-')) : undefined;
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(START, [String(port), ...(dir === undefined ? [] : [dir])], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise<never>((_, reject) => {
      started.once('error', reject);
      started.once('exit', () => reject(new Error('the MongoDB test server did not start')));
    });
    await Promise.race([new Promise((resolve) => createInterface(started.stdout).once('line', resolve)), ended]);
    ended.catch(() => undefined);
    return started;
  };
  let child = await start();
  return {
    url: `mongodb://127.0.0.1:${port}/`,
    signal: (signal) => void child.kill(signal),
    async restart() {
      await killed(child);
      child = await start();
    },
    async stop() {
      await killed(child);
      if (dir !== undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A database of one's own on a server. */
export interface TestDatabase {
  /** Names the database. */
  readonly url: string;
  /** The driver's client, to look past the adapter, and the database in it. */
  readonly client: MongoClient;
  readonly name: string;
  /** Drops it. */
  destroy(): Promise<void>;
}

/** @param url the server's, with or without a database and options. */
export function newDatabase(url: string): TestDatabase {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const [, hosts = '', options = ''] = /^([^/]+:\/\/[^/?]+)[^?]*(\?.*)?$/.exec(url) ?? [];
  const own = `${hosts}/${name}${options}`;
  const client = new MongoClient(own);
  return {
    url: own,
    client,
    name,
    async destroy() {
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}

/** Stores' server for a contract suite: TEST_MONGODB_URL, or a test server of our own. */
export async function contractServer(): Promise<{ readonly url: string; readonly own: boolean; readonly stop: () => Promise<void> }> {
  const given = process.env['TEST_MONGODB_URL'];
  if (given !== undefined && given !== '') return { url: given, own: false, stop: async () => undefined };
  const server = await startMongo();
  return { url: server.url, own: true, stop: server.stop };
}
