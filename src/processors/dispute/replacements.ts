import { readPurchase } from '../../commands/readStreams.js';
import type { GiftOfPurchase } from '../../domain/gift/events.js';
import type { MadePurchase } from '../../domain/purchase/state.js';
import { NotYetError, type StepDeps } from '../runner/index.js';

/** Milliseconds to wait for the purchase process, which issues a replacement as soon as its gift is exchanged. */
const UNISSUED_MS = 1_000;

/**
 * The purchase of the gift that replaces a disputed or refunded one: what happens to the money concerns the gift that
 * can be used. @throws NotYetError; UnavailableError
 */
export async function purchaseOf(
  { events }: Pick<StepDeps, 'events'>,
  { transaction_id }: GiftOfPurchase,
): Promise<MadePurchase> {
  const purchase = await readPurchase(events, transaction_id);
  if (purchase.status === 'none') throw new Error('a gift names a replacement that was never made');
  if (purchase.status === 'pending')
    throw new NotYetError('the replacement has not been issued yet', UNISSUED_MS, { mayNeverCome: true });
  return purchase;
}
