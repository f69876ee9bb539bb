/**
 * The demo: a fresh data folder, the demo catalogue, the whole service on embedded engines, and the main job over real HTTP;
 * then it goes on serving. PORT, HOST, LOG_LEVEL and DATA_DIR are respected; without DATA_DIR the folder is a temporary one, removed at the end.
 */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmbeddedEventStore } from '../adapters/embedded/eventStore.js';
import { startApp } from '../app.js';
import { currentTime } from '../clock.js';
import { importCatalogue } from '../commands/import/importCatalogue.js';
import { loadConfig } from '../config.js';
import { keyedHash } from '../domain/keyedHash.js';
import { notificationStream } from '../domain/notification.js';
import { loadKeys } from '../keys.js';
import { createLogger } from '../logger.js';
import { PACKAGE_ROOT } from '../packageRoot.js';
import type { EventStore } from '../ports/eventStore.js';
import { demoClient } from './console.js';
import { type Told, walkThrough } from './walkThrough.js';

const CATALOGUE = new URL('examples/demo.json', PACKAGE_ROOT);

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const chosen = process.env['DATA_DIR']?.trim();
const dataDir = chosen === undefined || chosen === '' ? mkdtempSync(join(tmpdir(), 'gift-demo-')) : chosen;
const temporary = dataDir !== chosen;
const base = loadConfig({ LOG_LEVEL: 'warn', ...process.env, DATA_DIR: dataDir, ROLES: '' });

/** Reads what became of telling a gift's receiver, until it is told. */
async function toldOf(events: EventStore, giftId: string): Promise<Told> {
  for (let wait = 0; wait < 100; wait++) {
    const last = (await events.read(notificationStream(giftId))).at(-1);
    if (last?.type === 'NotificationSent' || last?.type === 'NotificationFailed') return { outcome: last.type, detail: last.data };
    await sleep(50);
  }
  return { outcome: 'not told yet', detail: {} };
}

async function run(): Promise<void> {
  if (!temporary && existsSync(dataDir) && readdirSync(dataDir).length > 0) throw new Error(`DATA_DIR ${dataDir} is not empty: the demo wants a fresh one, or none`);
  print(`Gift Commerce demo. Data folder: ${dataDir}`);
  const { hashKey } = loadKeys(base);
  const events = await openEmbeddedEventStore({ dir: dataDir });
  const catalogue: unknown = JSON.parse(readFileSync(CATALOGUE, 'utf8'));
  const report = await importCatalogue({ events, hash: keyedHash(hashKey), now: currentTime }, catalogue, { by: { user: 'cli:demo' } });
  print(`Imported examples/demo.json: ${report.changes.length} entries, ${report.events} events.`);

  const logger = createLogger({ level: base.logLevel });
  const app = await startApp(base, logger).catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || process.env['PORT'] !== undefined) throw error;
    return startApp({ ...base, port: 0 }, logger);
  });
  const url = app.url ?? '';
  const end = async (): Promise<void> => {
    await app.close();
    await events.close();
    if (temporary) rmSync(dataDir, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end().catch(failed));
  try {
    await show(url, events);
  } catch (error) {
    await end();
    throw error;
  }
}

/** Walks through the main job. @throws Error where the service answers otherwise than it should */
async function show(url: string, events: EventStore): Promise<void> {
  for (let wait = 0; wait < 200 && (await fetch(`${url}/readyz`)).status !== 200; wait++) await sleep(25);
  print(`Serving on ${url} (API, projector, process managers, simulated payments and notifications, all in this process).`);
  const again = await walkThrough(demoClient(url, print), (giftId) => toldOf(events, giftId));
  print(`\nStill serving on ${url}; Ctrl-C ends it. To go on (the user token lasts ${base.accessTokenTtl} s):\n`);
  print(again(url));
  print(`\nThe API's description: ${url}/openapi.json, to read: ${url}/docs`);
}

function failed(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

await run().catch(failed);
