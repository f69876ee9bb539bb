/**
 * What the feed told of a purchase up to a position, read again from the streams: a purchase that was parked is open no
 * more, and the checkpoint may have gone past it since.
 */
import { giftStream } from '../../domain/gift.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { attemptOf, type NotificationEvent, notificationStream } from '../../domain/notification.js';
import { parkedStream, type WorkParked } from '../../domain/parked.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import type { PurchaseTrigger } from '../purchase/manager.js';

const READS_AT_ONCE = 32;
/** Refunds and late money are open by themselves. */
const OWN_TYPES: ReadonlySet<string> = new Set<PurchaseTrigger['type']>([
  'GiftsPurchased',
  'ChargeStarted',
  'PaymentAuthenticationRequired',
  'PaymentAuthenticationFailed',
  'PaymentCharged',
  'PaymentDeclined',
]);

/**
 * Its events at or below `upTo`, in log order: its own, the issues and cancellations of its gifts, their
 * first tellings, and the parkings of these. @throws UnavailableError
 */
export async function purchaseHistory(
  events: EventStore,
  transactionId: string,
  upTo: Position | undefined,
): Promise<RecordedEvent[]> {
  const own = await events.read(transactionStream(transactionId));
  const history = own.filter(({ type }) => OWN_TYPES.has(type));
  const bought = own.find(
    (event): event is RecordedEvent & { readonly data: GiftsPurchased['data'] } => event.type === 'GiftsPurchased',
  );
  if (bought !== undefined && own.some(({ type }) => type === 'PaymentCharged')) {
    const ids = deriveGiftIds(bought.data.seed, bought.data.receivers.length).map(({ gift_id }) => gift_id);
    history.push(...(await readAll(events, ids)), ...(await parkedTellings(events, transactionId)));
  }
  return history
    .filter(({ position }) => upTo !== undefined && position <= upTo)
    .sort((one, other) => (one.position < other.position ? -1 : 1));
}

/** How gifts were issued and told: so many streams at once. */
async function readAll(events: EventStore, giftIds: readonly string[]): Promise<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  await inParallel(giftIds, READS_AT_ONCE, async (giftId) => {
    const [life, told] = await Promise.all([events.read(giftStream(giftId)), events.read(notificationStream(giftId))]);
    found.push(
      ...life.filter(({ type }) => type === 'GiftIssued' || type === 'GiftCancelled'),
      ...told.filter((event) => attemptOf(event as unknown as NotificationEvent) === 1),
    );
  });
  return found;
}

/** A telling that was parked by itself stays so, or is retried by itself: it does not come back with its purchase. */
async function parkedTellings(events: EventStore, transactionId: string): Promise<RecordedEvent[]> {
  const all = await events.read(parkedStream('notification'));
  return all.filter(
    ({ type, data }) => type === 'WorkParked' && (data as WorkParked['data']).transaction_id === transactionId,
  );
}
