/** ResendGift: notifies a gift's receiver once more for each time that support asks for it. */
import { giftStream, isSomebody } from '../domain/gift/events.js';
import { refuseUnlessUsable } from '../domain/gift/decisions.js';
import { notificationAggregate, notificationAttempts, notificationStream } from '../domain/notification.js';
import { Refusal } from '../domain/refusal.js';
import type { CommandContext } from './context.js';
import { foundGift } from './loadGift.js';
import type { SupportDeps } from './supportAction.js';
import { type Transacted, transact } from './transact.js';

/**
 * Asks for one more notification of the gift's present receiver, once those before are settled: sent, failed or
 * discarded. The notification process sends it.
 * @throws Refusal `gift_not_found`, `gift_has_no_receiver`, `notification_pending`, or that of a gift that can't be
 * used; UnavailableError
 */
export async function resendGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  reason: string,
): Promise<Transacted> {
  return transact(deps.events, notificationAggregate, notificationStream(giftId), context, async (_, history) => {
    const stream = await deps.events.read(giftStream(giftId));
    const { gift, payment } = await foundGift(deps, giftId, stream);
    refuseUnlessUsable(gift, { now: context.now, payment });
    if (!isSomebody(gift.issued.receiver)) throw new Refusal('gift_has_no_receiver');
    const { next, nextNumber } = notificationAttempts(stream, history);
    // The revision names the receiver: one who gets the gift meanwhile is notified by the reassignment.
    const gift_revision = stream.at(-1)?.revision;
    // A gift that is charged and not issued yet is notified of once it is.
    if (gift_revision === undefined || next.do !== 'nothing') throw new Refusal('notification_pending');
    return [
      {
        type: 'NotificationRequested',
        data: { transaction_id: gift.issued.transaction_id, attempt: nextNumber, gift_revision, reason },
      },
    ];
  });
}
