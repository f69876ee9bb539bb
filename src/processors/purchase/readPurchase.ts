/** A purchase, read from its stream. */
import { fold } from '../../domain/decider.js';
import { type Purchase, purchaseAggregate, transactionStream } from '../../domain/purchase.js';
import type { EventStore } from '../../ports/eventStore.js';

/** @throws UnavailableError */
export async function readPurchase(events: Pick<EventStore, 'read'>, transactionId: string): Promise<Purchase> {
  return fold(purchaseAggregate, await events.read(transactionStream(transactionId)));
}
