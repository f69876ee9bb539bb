import { type Reservation, reservationAggregate } from '../domain/account.js';
import { fold } from '../domain/decider.js';
import { giftStream } from '../domain/gift/events.js';
import { notificationStream } from '../domain/notification.js';
import { transactionStream } from '../domain/purchase/events.js';
import { type Purchase, purchaseAggregate } from '../domain/purchase/state.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';

type Reads = Pick<EventStore, 'read'>;

/** @throws UnavailableError */
export async function readPurchase(events: Reads, transactionId: string): Promise<Purchase> {
  return fold(purchaseAggregate, await events.read(transactionStream(transactionId)));
}

/**
 * Past and present holders of a username or number; `stream`: the stream of its reservation. @throws UnavailableError
 */
export async function readReservation(events: Reads, stream: string): Promise<Reservation> {
  return fold(reservationAggregate, await events.read(stream));
}

/** @throws UnavailableError */
export async function readGiftAndNotification(
  events: Reads,
  giftId: string,
): Promise<readonly [gift: RecordedEvent[], notification: RecordedEvent[]]> {
  return Promise.all([events.read(giftStream(giftId)), events.read(notificationStream(giftId))]);
}
