/**
 * A MongoDB for tests: the one at TEST_MONGODB_URL, or a test server of our own on a free port of the loopback address.
 * TEST_MONGODB_SERVER names the script that starts such a server: it is called with a port (0: a free one) and,
 * where the server is to survive, a folder, and prints the server's address. Where there is none, `mongoMissing` says
 * so, and the tests that need it are skipped by name. Tests that kill the server always need one of our own.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { killed } from './serverProcess.js';

const SETTING = process.env['TEST_MONGODB_SERVER'] ?? '';
/** The setting's default, from the compiled file: a server beside the repository, which runs on Java. */
const BESIDE = fileURLToPath(new URL('../../../../../shared/engines/mongodb/start', import.meta.url));
const START = SETTING === '' ? BESIDE : SETTING;

/** It says within so long, in ms, that it listens. */
const START_MS = 60_000;
/**
 * One command at a time, over all connections. With every answer the server writes everything to its disk, half-done
 * commands too. Killed then, it has a document that its index doesn't know, can't find it and refuses to add it for
 * ever. A MongoDB writes a document whole or not at all.
 */
const ONE_AT_A_TIME = '-Dio.netty.eventLoopThreads=1';
/**
 * It lives for minutes at most: compiling its code further, and collecting in threads of its own, takes more of the
 * processors than it ever gives back.
 */
const SHORT_LIFE = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC';
/** Java says that it was given options. */
const TOLD_OPTIONS = 'Picked up JAVA_TOOL_OPTIONS';
/** It could not take its port, for instance; it stays all the same, and does nothing. */
const FAILED = 'Exception in thread "main"';

/** A test server of our own. */
export interface MongoServer {
  /** Ends with `/`: a database's name may follow. */
  readonly url: string;
  /** Sends it a signal. After SIGSTOP it does nothing any more once the call returns. */
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void;
  /** Starts it again on the same port with its data, once it has ended. */
  restart(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** Why no server of our own can be had; `undefined`: one can. */
export function mongoMissing(): string | undefined {
  if (!existsSync(START))
    return SETTING === '' ? 'TEST_MONGODB_SERVER names no MongoDB test server' : `TEST_MONGODB_SERVER: no ${SETTING}`;
  if (SETTING !== '') return undefined;
  return spawnSync('java', ['-version']).error === undefined ? undefined : 'the MongoDB test server needs Java';
}

/** Starts a server. `durable`: acknowledged writes survive its being killed. */
export async function startMongo({ durable = false }: { readonly durable?: boolean } = {}): Promise<MongoServer> {
  const dir = durable ? await mkdtemp(join(tmpdir(), 'gift-mongo-')) : undefined;
  let { child, url } = await startOn('0', dir);
  return {
    url,
    signal(signal) {
      child.kill(signal);
      while (signal === 'SIGSTOP' && !isStopped(child.pid ?? 0));
    },
    async restart() {
      await killed(child);
      ({ child } = await startOn(new URL(url).port, dir));
    },
    async stop() {
      await killed(child);
      if (dir !== undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The system stops a process's threads one by one, and one that runs may still answer. */
function isStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).every((task) => /\) T [^)]*$/.test(readFileSync(`${tasks}/${task}/stat`, 'utf8')));
}

/** @param port 0 takes a free one. @param dir holds its data, and survives it. */
async function startOn(
  port: string,
  dir: string | undefined,
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const options = [process.env['JAVA_TOOL_OPTIONS'] ?? '', SHORT_LIFE, ...(dir === undefined ? [] : [ONE_AT_A_TIME])]
    .join(' ')
    .trim();
  const child = spawn(START, [port, ...(dir === undefined ? [] : [dir])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, JAVA_TOOL_OPTIONS: options },
  });
  const failed = new Promise<never>((_, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      if (line.startsWith(TOLD_OPTIONS)) return;
      console.error(line);
      if (line.startsWith(FAILED)) reject(new Error(line));
    });
  });
  const late = AbortSignal.timeout(START_MS);
  try {
    const [url] = (await Promise.race([
      once(createInterface(child.stdout), 'line', { signal: late }),
      failed,
      once(child, 'exit', { signal: late }).then(() => Promise.reject(new Error('it ended'))),
    ])) as [string];
    return { child, url };
  } catch (error) {
    await killed(child);
    throw new Error(`the MongoDB test server did not start on port ${port}`, { cause: error });
  }
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
export async function contractServer(): Promise<{
  readonly url: string;
  readonly own: boolean;
  readonly stop: () => Promise<void>;
}> {
  const given = process.env['TEST_MONGODB_URL'];
  if (given !== undefined && given !== '') return { url: given, own: false, stop: async () => undefined };
  const server = await startMongo();
  return { url: server.url, own: true, stop: server.stop };
}
