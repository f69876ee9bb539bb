import { readGiftAndNotification } from '../../commands/readStreams.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { attemptOf, type NotificationEvent } from '../../domain/notification.js';
import { parkedStream, type WorkParked } from '../../domain/parked.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { PurchaseTrigger } from './state.js';

const READS_AT_ONCE = 32;
const OWN_TYPES: ReadonlySet<string> = new Set<PurchaseTrigger['type']>([
  'GiftsPurchased',
  'ChargeStarted',
  'PaymentAuthenticationRequired',
  'PaymentAuthenticationFailed',
  'PaymentCharged',
  'PaymentDeclined',
]);

/**
 * The events that the feed showed of a purchase: its own, and of its gifts the issues, first notifications and
 * their parkings. @throws UnavailableError
 */
export async function purchaseHistory(events: EventStore, transactionId: string): Promise<RecordedEvent[]> {
  const own = await events.read(transactionStream(transactionId));
  const history = own.filter(({ type }) => OWN_TYPES.has(type));
  const bought = own.find(
    (event): event is RecordedEvent & { readonly data: GiftsPurchased['data'] } => event.type === 'GiftsPurchased',
  );
  if (bought === undefined || !own.some(({ type }) => type === 'PaymentCharged')) return history;
  const ids = deriveGiftIds(bought.data.seed, bought.data.receivers.length).map(({ gift_id }) => gift_id);
  return [...history, ...(await giftEvents(events, ids)), ...(await parkedNotifications(events, transactionId))];
}

async function giftEvents(events: EventStore, giftIds: readonly string[]): Promise<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  await inParallel(giftIds, READS_AT_ONCE, async (giftId) => {
    const [gift, notification] = await readGiftAndNotification(events, giftId);
    found.push(
      ...gift.filter(({ type }) => type === 'GiftIssued'),
      ...notification.filter((event) => attemptOf(event as Recorded<NotificationEvent>) === 1),
    );
  });
  return found;
}

/** A notification parked by itself is retried by itself, not with its purchase. */
async function parkedNotifications(events: EventStore, transactionId: string): Promise<RecordedEvent[]> {
  const all = await events.read(parkedStream('notification'));
  return all.filter(
    ({ type, data }) => type === 'WorkParked' && (data as WorkParked['data']).transaction_id === transactionId,
  );
}
