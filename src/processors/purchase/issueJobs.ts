/** One job a gift, so that a failure holds up no other gift. */
import { giftStream } from '../../domain/gift/events.js';
import { issueGifts } from '../../domain/purchase/decisions.js';
import type { Job, ParkAs, PoolSize } from '../runner/jobs.js';
import type { Writer } from '../runner/writing.js';
import type { PurchaseWork } from './state.js';

const ISSUES: PoolSize = { atOnce: 128 };

/** The command of a gift's issue, where nothing else is appended with it. */
export const issueCommand = (giftId: string): string => `issue-${giftId}`;

/** `work`: the open purchase; `undefined` ends it. */
export function* issueJobs(
  work: () => PurchaseWork | undefined,
  parkAs: ParkAs,
  writer: Pick<Writer, 'append'>,
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
      // That it is issued already, by any process, is just as well.
      run: async () =>
        void (await writer.append(giftStream(giftId), event, 'none', { commandId: issueCommand(giftId), cause: last })),
    };
  }
}
