/**
 * The demo: a fresh data folder, the demo catalogue, the whole service on embedded engines, and the main job over HTTP;
 * then it keeps serving. It reads only the settings PORT, HOST, LOG_LEVEL and DATA_DIR; without DATA_DIR the folder is
 * temporary.
 */
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { sleep } from '../lib/world.js';
import { openLog } from '../service/engines.js';
import { type App, startApp } from '../service/app.js';
import { resources } from '../lib/async/resources.js';
import { currentTime } from '../lib/clock.js';
import { importCatalogue } from '../import/importCatalogue.js';
import { type Config, loadConfig } from '../service/config.js';
import { keyedHash } from '../domain/keyedHash.js';
import { notificationStream } from '../domain/notification.js';
import { loadKeys } from '../service/keys.js';
import { createLogger } from '../lib/logging/logger.js';
import { temporaryFolder } from '../lib/files/folders.js';
import { PACKAGE_ROOT } from '../lib/packageRoot.js';
import type { EventStore } from '../ports/eventStore.js';
import { refuseArguments } from '../service/startArguments.js';
import { startFailure } from '../service/startFailure.js';
import { demoClient } from './console.js';
import { type NotificationOutcome, walkThrough } from './walkThrough.js';

const CATALOGUE = new URL('examples/demo.json', PACKAGE_ROOT);

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

refuseArguments(
  'This starts the demo, and serves until Ctrl-C. It takes no arguments: PORT, HOST, LOG_LEVEL and DATA_DIR are environment variables.',
);
const open = resources();
/** Whether a signal has come, or the reader has left: failures after it come from closing. */
let stopping = false;
/** Whether the start is done: closing during the start would remove a folder that the start creates again. */
let up = false;
function stop(): void {
  if (stopping) return;
  stopping = true;
  if (up) void open.close().catch(failed);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
// The reader has left (`| head`).
process.stdout.on('error', stop);

/** Ignores the environment's engines and providers, which may be real ones. @throws ConfigError */
function settings(dataDir: string): Config {
  const { PORT, HOST, LOG_LEVEL = 'warn' } = process.env;
  return loadConfig({ PORT, HOST, LOG_LEVEL, DATA_DIR: dataDir });
}

async function notificationOf(events: EventStore, giftId: string): Promise<NotificationOutcome> {
  for (let wait = 0; wait < 100; wait++) {
    const last = (await events.read(notificationStream(giftId))).at(-1);
    if (last?.type === 'NotificationSent' || last?.type === 'NotificationFailed')
      return { outcome: last.type, detail: last.data };
    await sleep(50);
  }
  return { outcome: 'not notified yet', detail: {} };
}

async function run(): Promise<void> {
  const chosen = process.env['DATA_DIR']?.trim() ?? '';
  if (chosen !== '' && existsSync(chosen) && readdirSync(chosen).length > 0)
    throw new Error(`DATA_DIR ${chosen} is not empty: the demo wants a fresh one, or none`);
  const dataDir =
    chosen === ''
      ? open.add(temporaryFolder('gift-demo-'), async (dir) => rmSync(dir, { recursive: true, force: true }))
      : chosen;
  const config = settings(dataDir);
  print(`Gift Commerce demo. Data folder: ${dataDir}`);
  const { hashKey } = loadKeys(config);
  const { events, subjects } = await openLog(config);
  open.add(events);
  const catalogue: unknown = JSON.parse(readFileSync(CATALOGUE, 'utf8'));
  const report = await importCatalogue({ events, hash: keyedHash(hashKey), subjects, now: currentTime }, catalogue, {
    by: { user: 'cli:demo' },
  });
  print(`Imported examples/demo.json: ${report.changes.length} entries, ${report.events} events.`);
  const { url = '' } = open.add(await started(config));
  up = true;
  if (stopping) return open.close();

  for (let wait = 0; wait < 200 && (await fetch(`${url}/readyz`)).status !== 200; wait++) await sleep(25);
  print(`Serving on ${url}: API, projector, process managers,`);
  print('simulated payments and notifications, all in this process.');
  const again = await walkThrough(demoClient(url, print, process.stdout.columns), (giftId) =>
    notificationOf(events, giftId),
  );
  print(`\nStill serving on ${url}; Ctrl-C ends it.`);
  print(`To go on, as the till of Kettle & Crumb (its token lasts ${config.accessTokenTtl} s):\n`);
  print(again(url));
  print(`\nThe API's description: ${url}/openapi.json\nTo read: ${url}/docs`);
  print(`To look, as sam-support@demo.example (demo-sam-support): ${url}/console`);
}

/** Takes any free port where none was chosen and the usual one is taken. @throws Error that says what to change */
async function started(config: Config): Promise<App> {
  const logger = createLogger({ level: config.logLevel });
  try {
    return await startApp(config, logger).catch(async (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || process.env['PORT'] !== undefined) throw error;
      return startApp({ ...config, port: 0 }, logger);
    });
  } catch (error) {
    throw new Error(startFailure(error, config) ?? (error as Error).message, { cause: error });
  }
}

function failed(error: unknown): void {
  for (const one of error instanceof AggregateError ? (error.errors as unknown[]) : [error])
    process.stderr.write(`${one instanceof Error ? one.message : String(one)}\n`);
  process.exitCode = 1;
}

try {
  await run();
} catch (error) {
  if (!stopping) failed(error);
  await open.close().catch(failed);
}
