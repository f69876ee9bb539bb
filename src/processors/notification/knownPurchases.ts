import { LRUCache } from 'lru-cache';
import { readPurchase } from '../../commands/readStreams.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { NotifyDeps } from './notifyStep.js';

/** Most purchases held in memory: each takes up to a megabyte. */
const MOST = 8;

/**
 * Caches purchases, which never change. Ten thousand gifts of one purchase may be released at once, and each would
 * otherwise read the purchase with as many receivers.
 */
export function knownPurchases(events: Pick<EventStore, 'read'>): NotifyDeps['purchase'] {
  const known = new LRUCache<string, ReturnType<NotifyDeps['purchase']>>({ max: MOST });
  const read: NotifyDeps['purchase'] = async (transactionId) => {
    const purchase = await readPurchase(events, transactionId);
    if (purchase.status === 'none') throw new Error('a gift names a purchase that was never made');
    return purchase.purchase;
  };
  return (transactionId) => {
    const found = known.get(transactionId);
    if (found !== undefined) return found;
    const reading = read(transactionId);
    known.set(transactionId, reading);
    reading.catch(() => known.peek(transactionId) === reading && known.delete(transactionId));
    return reading;
  };
}
