import { readPurchase } from '../../../commands/readStreams.js';
import { inParallel } from '../../../lib/async/inParallel.js';
import type { EventStore } from '../../../ports/eventStore.js';

const AT_ONCE = 64;

/**
 * Charges and refunds that are not settled, in words, such as `the payment of transaction 6ec0…`.
 * @throws UnavailableError
 */
export async function moneyInFlight(
  events: Pick<EventStore, 'read'>,
  transactionIds: Iterable<string>,
): Promise<string[]> {
  const open: string[] = [];
  await inParallel(transactionIds, AT_ONCE, async (id) => {
    const purchase = await readPurchase(events, id);
    if (purchase.status === 'none') return;
    if (purchase.status === 'pending') open.push(`the payment of transaction ${id}`);
    for (const [refundId, { status }] of purchase.refunds)
      if (status === 'requested' || status === 'started') open.push(`refund ${refundId} of transaction ${id}`);
  });
  return open.sort();
}
