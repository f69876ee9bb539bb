/**
 * Real processes of the service under seeded clients, killed, frozen and on a full disk; then all that the clients saw,
 * and what is stored, is judged (docs/simulation.md#real-processes).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { importCatalogue } from '../../../src/import/importCatalogue.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { loadConfig } from '../../../src/service/config.js';
import { openLog } from '../../../src/service/engines.js';
import { loadKeys } from '../../../src/service/keys.js';
import { openTestEngines } from '../../support/engines/engines.js';
import { smallDisk } from '../../support/faults/smallDisk.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { type Fleet, startFleet } from '../../support/service/fleet.js';
import { clientTokenOf, userTokenOf } from '../../support/service/service.js';
import { PARTS, seededClients } from '../model/clients.js';
import {
  type Answer,
  type History,
  JUDGED_HEADERS,
  type Observation,
  type Recorder,
  recorder,
  toldBy,
} from '../model/history.js';
import { installationOf } from '../model/installation.js';
import type { Choice } from '../model/known.js';
import { readWhole } from '../model/lastReads.js';
import { seededRandom } from '../model/random.js';
import { requestOf } from '../model/requests.js';
import { makeFaults } from './faults.js';
import { storedFindings, timed } from './judgement.js';

export interface ChaosOptions {
  readonly ms: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

export interface ChaosReport {
  /** What is wrong, a text each: with what is stored, and requests that were not answered in the end. */
  readonly findings: readonly string[];
  /** What clients saw, not yet judged. */
  readonly history: History;
  readonly faults: Readonly<Record<string, number>>;
}

const CLIENTS = 6;
const DISK_MB = 400;
/** A client waits no longer for an answer. */
const PATIENCE_MS = 5_000;
/** Within this time after the last fault, and after it was first sent, each request is answered. */
const SETTLED_MS = 60_000;
/** Payment methods whose outcome is known at once. */
const PAYMENTS = ['pm_card_visa', 'pm_card_visa_chargeDeclined', 'wallet-invoice'];

interface Installed {
  readonly settings: Readonly<Record<string, string>>;
  readonly disk: string | undefined;
  close(): Promise<void>;
}

async function install(): Promise<Installed> {
  const engines = await openTestEngines();
  const disk = engines.servers.size === 0 ? smallDisk(DISK_MB) : undefined;
  const dir = disk?.dir ?? mkdtempSync(join(tmpdir(), 'gift-chaos-'));
  const settings = {
    ...engines.settings,
    DATA_DIR: join(dir, 'data'),
    PORT: '0',
    LOG_LEVEL: 'info',
    CHARGE_WAIT_MS: '1000',
    ACCESS_TOKEN_TTL: '86400',
    SEAL_EVERY_MS: '1000',
    // Clients try gifts of others all the time.
    UNKNOWN_GIFTS_PER_CALLER: '0',
    UNKNOWN_GIFTS_PER_ADDRESS: '0',
    // So does support.
    REPLACEMENTS_PER_DAY: '0',
    REVERSALS_PER_DAY: '0',
  };
  const config = loadConfig(settings);
  const { events, subjects } = await openLog(config);
  const hash = keyedHash(loadKeys(config).hashKey);
  const now = (): string => new Date().toISOString();
  await importCatalogue({ events, hash, subjects, now }, CATALOGUE, { by: { user: 'cli:test' } });
  await events.close();
  return {
    settings,
    disk: disk?.dir,
    async close() {
      await engines.close();
      if (disk === undefined) rmSync(dir, { recursive: true, force: true });
      else disk.remove();
    },
  };
}

/** Runs the service under faults for so long. */
export async function chaos({ ms, seed, log }: ChaosOptions): Promise<ChaosReport> {
  const installed = await install();
  const fleet = await startFleet(installed.settings);
  try {
    return await underFaults({ ms, seed, log }, fleet, installed);
  } finally {
    await fleet.close();
    await installed.close();
  }
}

async function underFaults({ ms, seed, log }: ChaosOptions, fleet: Fleet, installed: Installed): Promise<ChaosReport> {
  const { settings, disk } = installed;
  const installation = installationOf(CATALOGUE);
  const random = seededRandom(seed);
  const clients = seededClients({ installation, random, payments: PAYMENTS, parts: PARTS });
  const record = recorder(() => performance.timeOrigin + performance.now());
  const tokens = new Map<string, string>();
  const [url = ''] = fleet.urls();
  for (const user of installation.users.keys()) tokens.set(user, await userTokenOf(url, user));
  tokens.set('client:app', await clientTokenOf(url));

  const send = async (choice: Choice): Promise<Observation> => {
    const observation = await exchange(fleet, random, tokens, record, choice);
    clients.learn(observation);
    return observation;
  };
  const ending = AbortSignal.timeout(ms);
  const work = async (): Promise<void> => {
    while (!ending.aborted) if (toldBy(await send(clients.next())) === undefined) await sleep(random() * 200);
  };
  const options = { fleet, random: seededRandom(seed + 1), smallDisk: disk, signal: ending, log };
  const [faults] = await Promise.all([makeFaults(options), ...Array.from({ length: CLIENTS }, work)]);

  log('the last fault is over');
  const findings: string[] = [];
  for (const some of [clients.takeUpAll(), clients.readAll()]) findings.push(...(await sendAll(some, send)));
  const history = record.history();
  log(`${history.length} requests`);
  findings.push(...(await storedFindings(settings, fleet, timed(log))));
  return { findings, history, faults };
}

/** Sends all, each until it is answered, lists to their ends. @returns a text for each that was not in time */
async function sendAll(choices: readonly Choice[], send: (choice: Choice) => Promise<Observation>): Promise<string[]> {
  const findings: string[] = [];
  const left = choices.values();
  const untilTold = async (choice: Choice): Promise<Observation> => {
    const deadline = performance.now() + SETTLED_MS;
    let observation = await send(choice);
    while (toldBy(observation) === undefined && performance.now() < deadline) {
      await sleep(200);
      observation = await send(choice);
    }
    if (toldBy(observation) === undefined)
      findings.push(`not answered after the last fault: ${JSON.stringify(choice)}`);
    return observation;
  };
  const work = async (): Promise<void> => {
    for (const choice of left) await readWhole(choice, untilTold);
  };
  await Promise.all(Array.from({ length: CLIENTS }, work));
  return findings;
}

/** Sends a request to any process that serves the API. Without an answer in time the outcome is unknown. */
async function exchange(
  fleet: Fleet,
  random: () => number,
  tokens: ReadonlyMap<string, string>,
  record: Recorder,
  { client, operation }: Choice,
): ReturnType<Recorder['send']> extends (answer: never) => infer O ? Promise<O> : never {
  const urls = fleet.urls();
  const url = urls[Math.floor(random() * urls.length)];
  const { method, path, headers, body } = requestOf(operation);
  const answered = record.send(client, operation);
  if (url === undefined) return answered(undefined);
  const all = { ...headers, authorization: `Bearer ${tokens.get(client) ?? ''}` };
  const init = { method, headers: all, signal: AbortSignal.timeout(PATIENCE_MS) };
  const answer = await fetch(url + path, body === undefined ? init : { ...init, body: JSON.stringify(body) })
    .then(async (response): Promise<Answer> => {
      const text = await response.text();
      const judged = [...response.headers].filter(([name]) => JUDGED_HEADERS.has(name));
      return { status: response.status, headers: Object.fromEntries(judged), body: JSON.parse(text) };
    })
    .catch(() => undefined);
  return answered(answer);
}
