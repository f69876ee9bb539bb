/** Where a diagnosis looks, on engines that the service or the command line has opened. */
import { statfs } from 'node:fs/promises';
import { reachedLimits } from '../api/limits/reached.js';
import { endpointsOverview, WEBHOOK_LEASE } from '../deliveries/index.js';
import { NoAnswerError } from '../lib/engineError.js';
import { clockMs } from '../lib/clock.js';
import { systemMs } from '../lib/world.js';
import type { DiagnosisSources } from '../ops/diagnosis/index.js';
import { headStatus, openTileFolder } from '../ops/evidence/index.js';
import { type RecordedCall, recordedCalls } from '../ops/history/recordedCalls.js';
import { outwardState } from '../ops/outward/outwardWork.js';
import { interruptedGroups, waitingGroups } from '../ops/parked/decideGroup.js';
import type { EventStore } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { PROCESS_LEASE } from '../processors/runner/index.js';
import { dueGifts } from '../projections/dueGifts.js';
import type { ReadModels } from '../projections/index.js';
import { webhookEndpointsProjection } from '../projections/webhookEndpoints.js';
import { leaseState } from '../runtime/coordination/index.js';
import type { Subjects } from '../runtime/personal/index.js';
import { maintenance, type Projection } from '../runtime/readmodels/index.js';
import type { Config } from './config.js';
import { makesDeadLinks } from './deadLinks.js';
import { findHashKey } from './keys.js';
import { OtherKeysError, refuseUnlessKeysFit } from './keysCheck.js';
import { isEmbedded } from './personal.js';
import { treeDir } from './tree.js';

interface Read {
  readonly store: ReadStore;
  readonly models: Pick<ReadModels, 'schedule' | 'webhookEndpoints'>;
}

interface OpenLog {
  readonly events: EventStore;
  readonly keys: KeyStore;
  readonly subjects: Subjects;
}

/** Engines as far as they could be opened: each function throws why it could not. */
export interface DiagnosedEngines {
  readonly log: () => OpenLog;
  readonly read: () => Read;
}

export interface DiagnosisOptions extends DiagnosedEngines {
  readonly config: Config;
  readonly projections: readonly Projection[];
}

/** Sources that are the same for a process of the service and the command line. */
export type EngineSources = Omit<DiagnosisSources, 'parts' | 'status' | 'metrics' | 'onFault'>;

/** How long ago what is late now was to be sent, ms. */
const LATE_MS = 300_000;

export function engineSources({ log, read, config, projections }: DiagnosisOptions): EngineSources {
  const servers = serversOf(config);
  return {
    servers,
    outward: async () => outwardState(log().events),
    sealed: async () => log().events.sealed(),
    rebuilds: async () => rebuildsOf(read().store, projections),
    parked: async () => waitingGroups(log().events),
    interrupted: async () => interruptedGroups(log().events),
    lateSends: async () => lateSends(read()),
    async webhooks() {
      const { store, models } = read();
      if ((await store.active(webhookEndpointsProjection.name)) === undefined) return [];
      const { events, subjects } = log();
      const { records } = store;
      return endpointsOverview({ endpoints: models.webhookEndpoints, records, subjects, logId: events.logId });
    },
    async head() {
      const { events } = log();
      const folder = openTileFolder(treeDir(config), events.logId);
      return headStatus(
        events,
        folder,
        config.sealWitnesses.map(({ key }) => key),
      );
    },
    headsEveryMs: config.sealEveryMs,
    clocks: async () => clocksOf(read().store),
    keys: async () => keysFault(log(), config),
    settings: { warnings: config.warnings ?? [], deadLinks: makesDeadLinks(config) },
    limits: async () => reachedLimits(read().store.records, config, clockMs()),
    routines: async () => routinesOf(log().events, config),
    freeBytes: async () => (servers.size === ENGINES ? undefined : freeBytes(config.dataDir)),
  };
}

const ENGINES = 4;

function serversOf(config: Config): ReadonlySet<string> {
  const { eventStoreUrl, mongodbUrl, natsUrl } = config;
  return new Set([
    ...(eventStoreUrl === undefined ? [] : ['event store']),
    ...(mongodbUrl === undefined ? [] : ['read store']),
    ...(natsUrl === undefined ? [] : ['bus']),
    ...(isEmbedded(config) ? [] : ['key store']),
  ]);
}

async function rebuildsOf(store: ReadStore, projections: readonly Projection[]): ReturnType<EngineSources['rebuilds']> {
  const found = await Promise.all(
    projections.map(async ({ name }) => ({ name, record: await maintenance.rebuildOf(store, name) })),
  );
  return found.flatMap(({ name, record }) => (record === undefined ? [] : [{ name, rebuild: record.value }]));
}

/** Only the first page is counted: how many there are says how long it lasts, not what to do. */
async function lateSends({ store, models }: Read): ReturnType<EngineSources['lateSends']> {
  const due = dueGifts(store, models.schedule);
  if (!(await due.serves())) return { count: 0, more: false };
  const pages = due.toSend(new Date(clockMs() - LATE_MS).toISOString());
  const page = await pages.next();
  const first = page.done === true ? [] : page.value;
  const more = (await pages.next()).done !== true;
  const [example] = first;
  return { count: first.length, more, ...(example === undefined ? {} : { example: example.id }) };
}

async function clocksOf({ records }: ReadStore): ReturnType<EngineSources['clocks']> {
  const leases = await Promise.all(
    ['projector', PROCESS_LEASE, WEBHOOK_LEASE].map(async (name) => leaseState(records, name)),
  );
  return leases.flatMap((lease) =>
    lease?.at === undefined || lease.holder === null
      ? []
      : [{ process: lease.holder, aheadMs: systemMs() - Date.parse(lease.at) }],
  );
}

async function keysFault(log: OpenLog, config: Config): Promise<string | undefined> {
  try {
    await refuseUnlessKeysFit(log, () => findHashKey(config));
    return undefined;
  } catch (error) {
    // Of a key store that is away nothing is known: no key file is to be put back.
    if (error instanceof NoAnswerError)
      throw new UnavailableError(error.message, { cause: error, publicReason: 'the key store does not answer' });
    if (error instanceof OtherKeysError) return error.message;
    throw error;
  }
}

/** Days within which an installation is backed up and reconciled again. */
const ROUTINE_DAYS = 7;

const ROUTINES = [
  {
    of: 'backup',
    calls: new Set(['gift backup']),
    // Of an EventStoreDB its own means make backups, which the log does not know.
    isNeeded: ({ eventStoreUrl }: Config): boolean => eventStoreUrl === undefined,
  },
  {
    of: 'reconciliation',
    calls: new Set(['gift payments reconcile', 'GET /ops/payments/reconciliation']),
    isNeeded: ({ payments }: Config): boolean => payments !== 'simulated',
  },
] as const;

async function routinesOf(events: EventStore, config: Config): ReturnType<EngineSources['routines']> {
  const needed = config.sandbox ? [] : ROUTINES.filter(({ isNeeded }) => isNeeded(config));
  const now = clockMs();
  if (needed.length === 0 || !(await isOlderThan(events, now - ROUTINE_DAYS * 86_400_000))) return [];
  return Promise.all(
    needed.map(async ({ of, calls }) => {
      let last: string | undefined;
      const outcomes = new Map<string, number>();
      for await (const call of recordedCalls(events, calls, ROUTINE_DAYS, now)) {
        // One that failed, or was broken off, has backed up or compared nothing.
        if (call.count === undefined) continue;
        last ??= call.at;
        if (of === 'backup') break;
        addOutcome(outcomes, call);
      }
      const differing = [...outcomes].flatMap(([day, differences]) => (differences > 0 ? [{ day, differences }] : []));
      return { of, days: ROUTINE_DAYS, last, differing };
    }),
  );
}

/** Adds the number of differences that a comparison found, unless a later one of the same day is known. */
function addOutcome(outcomes: Map<string, number>, { asked, count }: RecordedCall): void {
  const { day } = asked;
  if (typeof day === 'string' && count !== undefined && !outcomes.has(day)) outcomes.set(day, count);
}

/** @param time milliseconds since the epoch */
async function isOlderThan(events: Pick<EventStore, 'readAll'>, time: number): Promise<boolean> {
  for await (const { events: batch } of events.readAll(undefined, {}, { batchSize: 1 })) {
    const [first] = batch;
    if (first !== undefined) return Date.parse(first.at) < time;
  }
  return false;
}

async function freeBytes(dataDir: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(dataDir);
    return bavail * bsize;
  } catch {
    // The engine that uses the folder reports the fault.
    return undefined;
  }
}
