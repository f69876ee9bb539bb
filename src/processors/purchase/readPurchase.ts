import { fold } from '../../domain/decider.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { type Purchase, purchaseAggregate } from '../../domain/purchase/state.js';
import type { EventStore } from '../../ports/eventStore.js';

/** @throws UnavailableError */
export async function readPurchase(events: Pick<EventStore, 'read'>, transactionId: string): Promise<Purchase> {
  return fold(purchaseAggregate, await events.read(transactionStream(transactionId)));
}
