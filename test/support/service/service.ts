/**
 * Starts the service for HTTP tests: in this process, or (`split`) one process per role, on the engines that
 * TEST_ENGINES chooses, with a small catalogue of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { startApp } from '../../../src/service/app.js';
import type { Overrides } from '../../../src/service/shared.js';
import { type ImportOptions, type ImportReport, importCatalogue } from '../../../src/import/importCatalogue.js';
import { type Config, loadConfig } from '../../../src/service/config.js';
import { shortcodesUnder } from '../../../src/domain/giftIds.js';
import { type KeyedHash, keyedHash } from '../../../src/domain/keyedHash.js';
import { openLog } from '../../../src/service/engines.js';
import { loadKeys } from '../../../src/service/keys.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { type TestEngines, openTestEngines } from '../engines/engines.js';
import { cleanEnv } from './mainProcess.js';
import { MAIN } from './programs.js';
import { CATALOGUE } from '../fixtures/testCatalogue.js';
import { DEADLINE_MS } from '../assertions/until.js';

/** An answer, read whole. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; `undefined` where it is none. */
  readonly json: Json;
}

/** JSON as tests look into it: whatever a test asserts, it asserts. */
// eslint-disable-next-line typescript/no-explicit-any -- every look-up in a test is itself an assertion
export type Json = any;

/** What a request carries. */
export interface Asking {
  readonly token?: string;
  /** Sent as JSON; a string or bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

/** A running service. */
export interface Service {
  readonly url: string;
  readonly dataDir: string;
  /** Its settings: a process that is given the same ones works on the same engines. */
  readonly settings: Readonly<Record<string, string>>;
  /** The log, to look at what stands there: the service's own handle where it runs in this process, else a second one. */
  readonly events: EventStore;
  readonly hash: KeyedHash;
  shortcodeOf(giftId: string): string;
  /** Every line logged so far, where it runs in this process. */
  readonly log: readonly string[];
  ask(method: string, path: string, asking?: Asking): Promise<Reply>;
  /** An access token of the client itself. */
  clientToken(client?: string): Promise<string>;
  /** An access token of a user of the catalogue; remembered between calls. */
  userToken(user: string, client?: string): Promise<string>;
  /** A second client of the read store; whoever opens it closes it. */
  openStore(): Promise<ReadStore>;
  /** Imports more entries, and retires what is missing where `prune` says so. */
  import(file: object, prune?: ImportOptions['prune']): Promise<ImportReport>;
  close(): Promise<void>;
}

/** How to start it. */
export interface ServiceOptions {
  /** Settings beside those that tests want anyway. */
  readonly env?: Readonly<Record<string, string>>;
  /** One process per role; default: whether TEST_TOPOLOGY is `split`. */
  readonly split?: boolean;
  /** The data folder to go on with; default a fresh one, removed in the end. */
  readonly dataDir?: string;
  /** The engines to go on with, which outlive it; default fresh ones (`engines.ts`). */
  readonly engines?: TestEngines;
  /** What is imported first; default the test catalogue. */
  readonly catalogue?: object;
  /** What is other than it is: another release's projections, engines that fail. Then it runs in this process. */
  readonly app?: Overrides;
}

/** On a slow machine the many requests that some tests send at once are no overload. */
const NEVER_SHED = { REQUEST_WAIT_MS: '0' };

const SPLIT_ROLES = ['worker', 'projector', 'processor', 'api'];

/** Starts it and waits until it is ready. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'gift-service-'));
  const engines = options.engines ?? (await openTestEngines());
  const env: Readonly<Record<string, string>> = {
    LOG_LEVEL: 'info',
    PORT: '0',
    CHARGE_WAIT_MS: '20000',
    // Signed heads are appended at any time: the log's end would not stand still.
    SEAL_EVERY_MS: '3600000',
    ...NEVER_SHED,
    ...engines.settings,
    ...options.env,
    DATA_DIR: dataDir,
  };
  const config = loadConfig(env);
  const hash = keyedHash(loadKeys(config).hashKey);
  const log: string[] = [];
  const split = options.split ?? (options.app === undefined && process.env['TEST_TOPOLOGY'] === 'split');
  // A sandbox opens its engines anew with each reset.
  const shares = !split && options.app === undefined && env['SANDBOX'] === undefined;
  const here = shares ? await startShared(config, log) : undefined;
  const { events, subjects } = here ?? (await openLog(config));
  const importMore: Service['import'] = (file, prune) =>
    importCatalogue({ events, hash, subjects, now: () => new Date().toISOString() }, file, {
      by: { user: 'cli:test' },
      prune,
    });
  if (options.catalogue !== undefined || options.dataDir === undefined)
    await importMore(options.catalogue ?? CATALOGUE);
  const running = here ?? (await (split ? startProcesses(env) : startHere(config, log, options.app)));
  await untilReady(running.url);

  const tokens = new Map<string, Promise<string>>();
  const ask = (method: string, path: string, asking: Asking = {}): Promise<Reply> =>
    request(running.url + path, method, asking);
  const remembered = (name: string, make: () => Promise<string>): Promise<string> => {
    const known = tokens.get(name) ?? make();
    tokens.set(name, known);
    // Read models that are behind give 503, which a later request may not.
    known.catch(() => tokens.delete(name));
    return known;
  };
  const clientToken = (client = 'app'): Promise<string> =>
    remembered(`client ${client}`, () => clientTokenOf(running.url, client));

  return {
    url: running.url,
    dataDir,
    settings: env,
    events,
    hash,
    shortcodeOf: shortcodesUnder(hash).of,
    log,
    ask,
    clientToken,
    userToken: (user, client = 'app') =>
      remembered(`user ${user} ${client}`, () => userTokenOf(running.url, user, clientToken(client))),
    openStore: async () =>
      config.mongodbUrl === undefined
        ? openEmbeddedReadStore({ dir: dataDir })
        : (await import('../../../src/adapters/mongodb/readStore.js')).openMongoReadStore({ url: config.mongodbUrl }),
    import: importMore,
    async close() {
      await running.close();
      if (!shares) await events.close();
      if (options.engines === undefined) await engines.close();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Sends one request, whatever the path looks like. */
export async function request(
  url: string,
  method: string,
  { token, body, headers = {}, key }: Asking = {},
): Promise<Reply> {
  const all: Record<string, string> = { ...headers };
  if (token !== undefined) all['authorization'] = `Bearer ${token}`;
  if (key !== undefined) all['idempotency-key'] = key;
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  if (body !== undefined && all['content-type'] === undefined) all['content-type'] = 'application/json';
  const content = body === undefined ? {} : { body: raw ? body : JSON.stringify(body) };
  const response = await fetch(url, { method, headers: all, redirect: 'manual', ...content } as RequestInit);
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json: json as Json };
}

async function granted(url: string, body: object, token?: string): Promise<string> {
  const reply = await request(`${url}/oauth/token`, 'POST', { body, ...(token === undefined ? {} : { token }) });
  if (reply.status !== 200) throw new Error(`no token: ${reply.status} ${reply.text}`);
  return reply.json['access_token'] as string;
}

/** An access token of a client of the test catalogue. */
export function clientTokenOf(url: string, client = 'app'): Promise<string> {
  return granted(url, { grant_type: 'client_credentials', client_id: client, client_secret: `${client}-secret` });
}

/** An access token of a user of the test catalogue. */
export async function userTokenOf(url: string, user: string, clientToken = clientTokenOf(url)): Promise<string> {
  return granted(
    url,
    { grant_type: 'password', username: `${user}@test.example`, password: `${user}-password` },
    await clientToken,
  );
}

interface Running {
  readonly url: string;
  close(): Promise<void>;
}

async function startHere(config: Config, log: string[], options?: Overrides): Promise<Running> {
  const logger = pino({ level: config.logLevel }, { write: (line: string) => void log.push(line) });
  const app = await startApp(config, logger, options);
  return { url: app.url ?? '', close: () => app.close() };
}

type Log = Pick<Awaited<ReturnType<typeof openLog>>, 'events' | 'subjects'>;

/**
 * With its own handle on the log, and its projector on this thread: starting threads, and loading what they run, is most
 * of a start's work. Services in processes of their own (`startProcess`) have theirs.
 */
async function startShared(config: Config, log: string[]): Promise<Running & Log> {
  let opened: Log | undefined;
  const running = await startHere(config, log, {
    through(engines, subjects) {
      opened = { events: engines.events, subjects };
      return engines;
    },
  });
  if (opened === undefined) throw new Error('the service started without engines');
  return { ...running, ...opened };
}

/** A process of the service. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Where it serves; `undefined` without the role `api`. */
  readonly url: string | undefined;
  readonly lines: readonly string[];
  /** Ends it and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts `main` (default that of this project) as a process of its own, and waits until it says that it has started.
 *
 * @param node the program that runs it
 */
export async function startProcess(
  env: Readonly<Record<string, string>>,
  main = MAIN,
  node = process.execPath,
): Promise<ServiceProcess> {
  const child = spawn(node, [main], {
    env: { ...cleanEnv(), ...NEVER_SHED, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const url = await new Promise<string | undefined>((resolve, reject) => {
    let rest = '';
    const read = (chunk: Buffer): void => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) {
        lines.push(line);
        if (line.includes('"msg":"started"')) resolve((JSON.parse(line) as { url?: string }).url);
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`the service ended with ${code}: ${lines.join('\n')}${rest}`)));
  });
  return {
    child,
    url,
    lines,
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}

async function startProcesses(env: Readonly<Record<string, string>>): Promise<Running> {
  const started = await Promise.allSettled(SPLIT_ROLES.map((ROLES) => startProcess({ ...env, ROLES })));
  const processes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    for (const one of processes) await one.end('SIGKILL');
    throw failed.reason;
  }
  const url = processes.find((one) => one.url !== undefined)?.url;
  if (url === undefined) throw new Error('no process serves the API');
  return {
    url,
    async close() {
      await Promise.all(processes.map((one) => one.end()));
    },
  };
}

/** Waits until `/readyz` says so. */
export async function untilReady(url: string): Promise<void> {
  for (const end = performance.now() + DEADLINE_MS; performance.now() < end;) {
    const reply = await request(`${url}/readyz`, 'GET').catch(() => undefined);
    if (reply?.status === 200) return;
    await sleep(25);
  }
  throw new Error(`${url} did not get ready: ${(await request(`${url}/readyz`, 'GET')).text}`);
}
