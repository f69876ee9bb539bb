/** How the process managers stand: what is open, what was given up, and who works. */
import { inParallel } from '../../lib/async/inParallel.js';
import { inSlices } from '../../lib/async/slices.js';
import { isSettled } from '../parked/parkedSettled.js';
import { PARKED_NAMES, type ParkedName } from '../../domain/parked.js';
import type { EventStore } from '../../ports/eventStore.js';
import { FEED_TYPES, type Intent } from '../../processors/managers.js';
import { parkLateMoneyAs } from '../../processors/dispute/manager.js';
import { openWork } from '../../processors/runner/openWork.js';
import { purchaseHistory } from '../../processors/runner/reopen.js';
import { PROCESS_LEASE } from '../../processors/runner/run.js';
import type { OpenWork } from '../../processors/runner/work.js';
import { rate } from '../../runtime/readmodels/maintenance/rate.js';
import { lagBehind } from '../../runtime/log/lag.js';
import { type StatusSamples, holderOf, lastHolderOf } from './statusSampler.js';
import { COUNT, inTenths, type ProcessManagerStatus } from './status.js';

/** For so long the log is folded, in ms: where they have never noted anything it is all of it. */
const FOLD_MS = 5_000;
const STREAMS_AT_ONCE = 8;

/** What the feed tells half of, from where it was left on. */
type HalfTold = Extract<Intent, { do: 'reopen' | 'retell' | 'late money' }>;

/**
 * How each stands now: what is open is folded from the log, what the process that works says of itself is not asked.
 * @param parked counts what waits for a person (`parkedWork.ts`). @throws UnavailableError
 */
export async function processManagerStatus(
  events: EventStore,
  parked: () => Promise<ReadonlyMap<ParkedName, number>>,
  samples: StatusSamples,
): Promise<ProcessManagerStatus[]> {
  const { seen, was } = samples;
  const from = seen.positions.get(PROCESS_LEASE);
  const open = openWork(from);
  const late = AbortSignal.timeout(FOLD_MS);
  let whole = true;
  for await (const batch of events.readAll(from, { types: FEED_TYPES }, { signal: late })) {
    await inSlices(batch.events, (event) => void open.apply(event));
    open.lookedAt(batch.position);
    whole = batch.caughtUp;
  }
  // Broken off before its first batch, it has looked at nothing.
  if (late.aborted) whole = false;
  await settleByStreams(events, open, late);
  const done = open.checkpoint();
  const [waiting, perSecond, lag] = await Promise.all([
    parked(),
    rate(events, FEED_TYPES, { from: was.positions.get(PROCESS_LEASE), to: from, ms: seen.at - was.at }),
    open.size === 0 ? { events: 0, whole: true } : lagBehind(events, done, FEED_TYPES, COUNT),
  ]);
  const inFlight = new Map<ParkedName, number>();
  await inSlices(open.resume(), (intent) =>
    inFlight.set(processOf(intent), (inFlight.get(processOf(intent)) ?? 0) + 1),
  );
  const seconds = open.oldestAt === undefined ? 0 : Math.max(0, (Date.now() - Date.parse(open.oldestAt)) / 1_000);
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

/** Of what the feed tells half the streams tell the rest. */
async function settleByStreams(events: EventStore, open: OpenWork, late: AbortSignal): Promise<void> {
  const waiting: HalfTold[] = [];
  await inSlices(open.resume(), (intent) => {
    if (intent.do === 'reopen' || intent.do === 'retell' || intent.do === 'late money') waiting.push(intent);
  });
  await inParallel(waiting, STREAMS_AT_ONCE, (intent) => settleByStream(events, open, intent), late);
}

async function settleByStream(events: EventStore, open: OpenWork, intent: HalfTold): Promise<void> {
  switch (intent.do) {
    // Purchases of which it tells only the end, since they began at or below the checkpoint, or were retried.
    case 'reopen': {
      const { transactionId } = intent;
      return void open.reopen(
        transactionId,
        await purchaseHistory(events, transactionId, open.beginReopen(transactionId)),
      );
    }
    // Gifts whose receivers were to be told again, or are others by now: that they have been it does not tell.
    case 'retell': {
      const { giftId } = intent;
      const { transactionId = '', generation = 0 } = open.retelling(giftId) ?? {};
      if (await isSettled(events, { name: 'notification', work: { entity: giftId, transaction_id: transactionId } }))
        open.retold(giftId, generation);
      return undefined;
    }
    // Disputes whose gifts were blocked before they were lost: their end alone reads as if nothing were done.
    case 'late money': {
      const { transactionId, key } = intent;
      const { name, entity } = parkLateMoneyAs(transactionId, key);
      if (name === 'dispute' && (await isSettled(events, { name, work: { entity, transaction_id: transactionId } })))
        open.lateMoneyDone(transactionId, key);
      return undefined;
    }
    default:
      return intent satisfies never;
  }
}

/** Which process manager parks it, should it fail. */
function processOf(intent: Intent): ParkedName {
  switch (intent.do) {
    case 'charge':
    case 'issue':
    case 'reopen':
      return 'purchase';
    case 'tell':
    case 'find out':
    case 'go on telling':
    case 'retell':
      return 'notification';
    case 'refund':
      return 'refund';
    case 'late money':
      return parkLateMoneyAs(intent.transactionId, intent.key).name;
    default:
      return intent satisfies never;
  }
}
