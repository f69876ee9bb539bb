import { readPurchase } from '../../commands/readStreams.js';
import { giftStream } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { parkedNameOf } from '../../domain/parked.js';
import { issueGifts } from '../../domain/purchase/decisions.js';
import { type MadePurchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { fold } from '../../domain/decider.js';
import { idOf } from '../../domain/streamName.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Job, ParkAs, PoolSize, ProcessManager, StepDeps } from '../runner/index.js';
import { charge, type ChargeDeps } from './chargeStep.js';
import {
  type PurchaseIntent,
  type PurchaseTrigger,
  type PurchaseWork,
  reactToPurchase,
  resumePurchase,
} from './state.js';

const CHARGES: PoolSize = { atOnce: 128 };
const ISSUES: PoolSize = { atOnce: 128 };
const READS_AT_ONCE = 32;

export const purchaseManager: ProcessManager<PurchaseWork, PurchaseTrigger, PurchaseIntent, ChargeDeps> = {
  name: 'purchase',
  steps: ['charge', 'issue'],
  events: {
    GiftsPurchased: true,
    ChargeStarted: true,
    PaymentAuthenticationRequired: true,
    PaymentAuthenticationFailed: true,
    PaymentCharged: true,
    PaymentDeclined: true,
    GiftIssued: true,
    WorkParked: true,
    WorkRetried: true,
  },
  instancesOf(event) {
    switch (event.type) {
      case 'GiftIssued':
        return [event.data.transaction_id];
      case 'WorkParked':
      case 'WorkRetried':
        return parkedNameOf(event.stream) === 'purchase' ? [event.data.entity] : [];
      default:
        return [idOf(event.stream)];
    }
  },
  react: reactToPurchase,
  resume: resumePurchase,
  parkAs: ({ do: step, instance }) => ({ name: 'purchase', entity: instance, step }),
  jobs(intent, open, deps) {
    const work = (): PurchaseWork | undefined => open.state(purchaseManager, intent.instance);
    switch (intent.do) {
      case 'charge':
        return [chargeJob(intent, work, deps)];
      case 'issue':
        return issueJobs(work, purchaseManager.parkAs(intent), deps.writer);
      default:
        return intent.do satisfies never;
    }
  },
  async isSettled(events, { entity }) {
    const purchase = await readPurchase(events, entity);
    return purchase.status === 'declined' || (purchase.status === 'charged' && (await isIssued(events, purchase)));
  },
  async history(events, instance) {
    const own = await events.read(transactionStream(instance));
    const purchase = fold(purchaseAggregate, own);
    if (purchase.status !== 'charged') return own;
    const issues: RecordedEvent[] = [];
    await forEachGift(purchase, async (giftId) => void issues.push(...(await readIssue(events, giftId))));
    return [...own, ...issues];
  },
  ends: ({ type }) => type === 'PaymentDeclined' || type === 'WorkParked',
};

function chargeJob(intent: PurchaseIntent, work: () => PurchaseWork | undefined, deps: ChargeDeps): Job {
  return {
    key: `charge/${intent.instance}`,
    pool: CHARGES,
    transactionId: intent.instance,
    parkAs: purchaseManager.parkAs(intent),
    cause: () => work()?.last,
    run: async (attempt) => {
      const now = work();
      const fresh = attempt === 1 && intent.fresh === true && now?.stage === 'bought';
      if (now !== undefined && now.stage !== 'charged') await charge(deps, now, fresh);
    },
  };
}

async function isIssued(events: EventStore, purchase: MadePurchase): Promise<boolean> {
  const missing = new AbortController();
  const look = async (giftId: string): Promise<void> => {
    if ((await readIssue(events, giftId)).length === 0) missing.abort();
  };
  await forEachGift(purchase, look, missing.signal);
  return !missing.signal.aborted;
}

/** A gift's stream begins with its issue. */
const readIssue = (events: EventStore, giftId: string): Promise<RecordedEvent[]> =>
  events.read(giftStream(giftId), { limit: 1 });

async function forEachGift(
  { purchase: { seed, receivers } }: MadePurchase,
  run: (giftId: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  await inParallel(deriveGiftIds(seed, receivers.length), READS_AT_ONCE, ({ gift_id }) => run(gift_id), signal);
}

/** Command id of an issue that is appended without another event. */
const issueCommand = (giftId: string): string => `issue-${giftId}`;

/** One job per gift: a failure holds up no other gift. */
function* issueJobs(
  work: () => PurchaseWork | undefined,
  parkAs: ParkAs,
  writer: Pick<StepDeps['writer'], 'append'>,
): Generator<Job, void> {
  const purchase = work();
  if (purchase === undefined) return;
  for (const { giftId, event } of issueGifts(purchase.purchase, purchase.purchasedAt)) {
    const last = work()?.last;
    if (last === undefined) return;
    yield {
      key: `issue/${giftId}`,
      pool: ISSUES,
      transactionId: purchase.purchase.transaction_id,
      parkAs,
      once: true,
      cause: () => work()?.last,
      // A conflict means that the gift is issued already, which is no failure.
      run: async () =>
        void (await writer.append(giftStream(giftId), event, 'none', { commandId: issueCommand(giftId), cause: last })),
    };
  }
}
