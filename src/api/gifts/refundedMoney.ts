import type { RefundedMoney } from '../../domain/purchase/status.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { within } from '../../lib/async/within.js';
import type { EventStore } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { reversalsProjection } from '../../projections/reversals.js';
import { foldDocument, type ReadModel } from '../../runtime/readmodels/index.js';

/** How long to wait for the log before the read model is read instead, ms. */
const LOG_MS = 1_000;

/**
 * Refunds and disputes of a purchase, from its stream; from the read model where the log does not answer. `undefined`:
 * there are none.
 * @throws UnavailableError where neither answers
 */
export async function refundedMoneyOf(
  { events, reversals }: { readonly events: Pick<EventStore, 'read'>; readonly reversals: ReadModel<RefundedMoney> },
  transactionId: string,
): Promise<RefundedMoney | undefined> {
  try {
    // The purchase's first event is skipped: it is large and tells nothing of refunds or disputes.
    const reading = events.read(transactionStream(transactionId), { from: 1 });
    const history = await within(reading, LOG_MS, () => {
      throw new UnavailableError('the log does not answer');
    });
    return foldDocument(reversalsProjection, history, transactionId);
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return reversals.get(transactionId);
  }
}
