/** One job per gift: a failure holds up no other gift. */
import { giftStream } from '../../domain/gift/events.js';
import { issueGifts } from '../../domain/purchase/decisions.js';
import type { Job, ParkAs, PoolSize, StepDeps } from '../runner/index.js';
import type { PurchaseWork } from './state.js';

const ISSUES: PoolSize = { atOnce: 128 };

/** Command id of an issue that is appended without another event. */
export const issueCommand = (giftId: string): string => `issue-${giftId}`;

export function* issueJobs(
  work: () => PurchaseWork | undefined,
  parkAs: ParkAs,
  writer: Pick<StepDeps['writer'], 'append'>,
): Generator<Job, void> {
  const purchase = work();
  if (purchase === undefined) return;
  for (const { giftId, event } of issueGifts(purchase.purchase, purchase.purchasedAt)) {
    const last = work()?.last;
    if (last === undefined) return;
    yield {
      key: `issue/${giftId}`,
      pool: ISSUES,
      transactionId: purchase.purchase.transaction_id,
      parkAs,
      once: true,
      cause: () => work()?.last,
      // A conflict means that the gift is issued already, which is no failure.
      run: async () =>
        void (await writer.append(giftStream(giftId), event, 'none', { commandId: issueCommand(giftId), cause: last })),
    };
  }
}
