/**
 * Status of the service, only from the engines: the same from any process, and a stuck or dead one can't look healthy.
 */
import { parkedWork } from './parkedWork.js';
import { failingParts } from './failingParts.js';
import { readModelStatus } from './readModelStatus.js';
import { type StatusEntry, COUNT, type ProcessManagerStatus } from './status.js';
import { type StatusOptions, statusSampler, type StatusSamples, holderOf, lastHolderOf } from './statusSampler.js';
import { PARKED_NAMES, type ParkedName } from '../../domain/parked.js';
import { clockMs } from '../../lib/clock.js';
import { timeoutSignal } from '../../lib/world.js';
import type { EventStore } from '../../ports/eventStore.js';
import { FEED_TYPES, type ManagerDeps, MANAGERS } from '../../processors/managers.js';
import { PROCESS_LEASE, workInLog } from '../../processors/runner/index.js';
import { rate } from './rate.js';
import { lagBehind } from '../../runtime/log/lag.js';
import { inTenths } from '../../lib/inTenths.js';

export interface ServiceStatus {
  /** Present status. Takes two seconds, unless it was called within the last minute. @throws UnavailableError */
  look(): Promise<StatusEntry[]>;
  close(): Promise<void>;
}

export function openServiceStatus(options: StatusOptions): ServiceStatus {
  const { events, store, projections, own } = options;
  const sampler = statusSampler(options);
  const parked = parkedWork(events);
  return {
    async look() {
      const samples = await sampler.two();
      const [models, processes, parts] = await Promise.all([
        Promise.all(projections.map((projection) => readModelStatus(options, projection, samples))),
        processManagerStatus(events, parked, samples),
        failingParts(store.records, own),
      ]);
      return [...models, ...processes, ...parts];
    },
    close: () => sampler.close(),
  };
}

/** Most milliseconds that the fold may take, since without a checkpoint the whole log is folded. */
const FOLD_MS = 5_000;

/**
 * Folds open work from the log, independently of the process that runs the managers. `parked` counts parked work
 * (`parkedWork.ts`).
 */
async function processManagerStatus(
  events: EventStore,
  parked: () => Promise<ReadonlyMap<ParkedName, number>>,
  samples: StatusSamples,
): Promise<ProcessManagerStatus[]> {
  const { seen, was } = samples;
  const from = seen.positions.get(PROCESS_LEASE);
  const open = await workInLog<ManagerDeps>(events, MANAGERS, from, timeoutSignal(FOLD_MS));
  const done = open.checkpoint;
  const [waiting, perSecond, lag] = await Promise.all([
    parked(),
    rate(events, FEED_TYPES, { from: was.positions.get(PROCESS_LEASE), to: from, ms: seen.at - was.at }),
    open.size === 0 ? { events: 0, whole: true } : lagBehind(events, done, FEED_TYPES, COUNT),
  ]);
  const seconds = open.oldestAt === undefined ? 0 : Math.max(0, (clockMs() - Date.parse(open.oldestAt)) / 1_000);
  return PARKED_NAMES.map((name) => ({
    kind: 'process',
    name,
    position: done ?? null,
    invalid_position: seen.invalid.get(PROCESS_LEASE) ?? null,
    lag_events: lag.events,
    lag_exact: lag.whole && open.whole,
    lag_seconds: inTenths(seconds),
    per_second: perSecond,
    holder: holderOf(PROCESS_LEASE, samples),
    last_holder: lastHolderOf(PROCESS_LEASE, samples),
    in_flight: open.inFlight.get(name) ?? 0,
    parked: waiting.get(name) ?? 0,
  }));
}
