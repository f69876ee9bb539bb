import { inParallel } from '../../lib/async/inParallel.js';
import { inSlices } from '../../lib/async/slices.js';
import { PARKED_NAMES, type ParkedName } from '../../domain/parked.js';
import { clockMs } from '../../lib/clock.js';
import type { EventStore } from '../../ports/eventStore.js';
import { FEED_TYPES, type ManagerDeps, MANAGERS } from '../../processors/managers.js';
import { type Asked, type OpenWork, openWork, PROCESS_LEASE, REOPEN, reopen } from '../../processors/runner/index.js';
import { rate } from '../../runtime/readmodels/index.js';
import { lagBehind } from '../../runtime/log/lag.js';
import { type StatusSamples, holderOf, lastHolderOf } from './statusSampler.js';
import { COUNT, inTenths, type ProcessManagerStatus } from './status.js';

/** Most milliseconds that the fold may take, since without a checkpoint the whole log is folded. */
const FOLD_MS = 5_000;
const STREAMS_AT_ONCE = 8;

/**
 * Folds open work from the log, independently of the process that runs the managers. `parked` counts parked work
 * (`parkedWork.ts`).
 */
export async function processManagerStatus(
  events: EventStore,
  parked: () => Promise<ReadonlyMap<ParkedName, number>>,
  samples: StatusSamples,
): Promise<ProcessManagerStatus[]> {
  const { seen, was } = samples;
  const from = seen.positions.get(PROCESS_LEASE);
  const open = openWork<ManagerDeps>(MANAGERS, from);
  const late = AbortSignal.timeout(FOLD_MS);
  let whole = true;
  for await (const batch of events.readAll(from, { types: FEED_TYPES }, { signal: late })) {
    await inSlices(batch.events, (event) => void open.apply(event));
    open.lookedAt(batch.position);
    whole = batch.caughtUp;
  }
  // The loop may have ended before its first batch.
  if (late.aborted) whole = false;
  await settleByStreams(events, open, late);
  const done = open.checkpoint();
  const [waiting, perSecond, lag] = await Promise.all([
    parked(),
    rate(events, FEED_TYPES, { from: was.positions.get(PROCESS_LEASE), to: from, ms: seen.at - was.at }),
    open.size === 0 ? { events: 0, whole: true } : lagBehind(events, done, FEED_TYPES, COUNT),
  ]);
  const inFlight = new Map<ParkedName, number>();
  await inSlices(open.resume(), (asked) => {
    const name = processOf(asked);
    inFlight.set(name, (inFlight.get(name) ?? 0) + 1);
  });
  const seconds = open.oldestAt === undefined ? 0 : Math.max(0, (clockMs() - Date.parse(open.oldestAt)) / 1_000);
  return PARKED_NAMES.map((name) => ({
    kind: 'process',
    name,
    position: done ?? null,
    invalid_position: seen.invalid.get(PROCESS_LEASE) ?? null,
    lag_events: lag.events,
    lag_exact: lag.whole && whole,
    lag_seconds: inTenths(seconds),
    per_second: perSecond,
    holder: holderOf(PROCESS_LEASE, samples),
    last_holder: lastHolderOf(PROCESS_LEASE, samples),
    in_flight: inFlight.get(name) ?? 0,
    parked: waiting.get(name) ?? 0,
  }));
}

/** Settles open work by its streams where its events are from before the checkpoint, at which the feed starts. */
async function settleByStreams(events: EventStore, open: OpenWork<ManagerDeps>, late: AbortSignal): Promise<void> {
  const asked = [...open.resume()];
  await inParallel(
    asked.filter(({ manager, intent }) => intent.do === REOPEN || manager.settledBefore !== undefined),
    STREAMS_AT_ONCE,
    async (one) => {
      const { manager, intent } = one;
      if (intent.do === REOPEN) await reopen(open, events, manager, intent.instance);
      else if ((await manager.settledBefore?.(events, intent)) === true) open.done(one);
    },
    late,
  );
}

function processOf({ manager, intent }: Asked<ManagerDeps>): ParkedName {
  return intent.do === REOPEN ? manager.name : manager.parkAs(intent).name;
}
