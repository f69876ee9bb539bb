/**
 * Whether parked or seemingly open work is over, by the streams: the parked work's own events don't show a retry that
 * went well.
 */
import { fold } from '../../domain/decider.js';
import { giftStream } from '../../domain/gift.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { disputeKey, reversalSteps, PROVIDER_REFUND_KEY } from '../../domain/disputes.js';
import { notificationStream } from '../../domain/notification.js';
import type { ParkedName, ParkedWork } from '../../domain/parked.js';
import {
  reversalsOf,
  type MadePurchase,
  type Purchase,
  purchaseAggregate,
  transactionStream,
} from '../../domain/purchase.js';
import { notificationAttempts } from '../../domain/notificationAttempts.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore } from '../../ports/eventStore.js';

/** Streams read in parallel. */
const READS = 32;

/**
 * Whether it is over, well or not: the charge settled and its gifts issued; the receiver notified or beyond reach; the
 * money given back, or none due; the dispute or the provider's refund applied to the gifts.
 * @throws UnavailableError
 */
export async function isSettled(
  events: EventStore,
  { name, work }: { readonly name: ParkedName; readonly work: Pick<ParkedWork, 'entity' | 'transaction_id'> },
): Promise<boolean> {
  const { entity, transaction_id } = work;
  if (name === 'notification') return isNotified(events, entity);
  const purchase: Purchase = fold(purchaseAggregate, await events.read(transactionStream(transaction_id)));
  if (purchase.status === 'none') return false;
  const isLeft = (key: string): boolean => reversalSteps(reversalsOf(purchase)).some((step) => step.key === key);
  switch (name) {
    case 'purchase':
      return purchase.status === 'declined' || (purchase.status === 'charged' && (await isIssued(events, purchase)));
    case 'refund': {
      const refund = purchase.refunds.get(entity);
      return refund === undefined
        ? !isLeft(PROVIDER_REFUND_KEY)
        : refund.status === 'refunded' || refund.status === 'nothing';
    }
    case 'dispute':
      return !isLeft(disputeKey(entity));
    default:
      throw new Error(`parked by ${name satisfies never as string}, which is nobody`);
  }
}

async function isNotified(events: EventStore, giftId: string): Promise<boolean> {
  const [gift, notification] = await Promise.all([
    events.read(giftStream(giftId)),
    events.read(notificationStream(giftId)),
  ]);
  return gift.length > 0 && notificationAttempts(gift, notification).next.do === 'nothing';
}

async function isIssued(events: EventStore, { purchase }: MadePurchase): Promise<boolean> {
  const ids = deriveGiftIds(purchase.seed, purchase.receivers.length);
  const missing = new AbortController();
  await inParallel(
    ids,
    READS,
    async ({ gift_id }) => {
      const issued = await events.read(giftStream(gift_id), { limit: 1 });
      if (issued.length === 0) missing.abort();
    },
    missing.signal,
  );
  return !missing.signal.aborted;
}
