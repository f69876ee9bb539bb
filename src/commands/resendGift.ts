import { HISTORY_ONLY } from '../domain/decider.js';
import { giftStream, isSomebody } from '../domain/gift/events.js';
import { isHeldBack, refuseUnlessUsable } from '../domain/gift/decisions.js';
import { notificationAttempts, notificationStream } from '../domain/notification.js';
import { Refusal } from '../domain/refusal.js';
import { type CommandContext, type Transacted, transact } from './transact.js';
import { foundGift } from './loadGift.js';
import { refuseRepeats } from './refuseRepeats.js';
import type { SupportDeps } from './supportAction.js';

/**
 * Requests one more notification of the present receiver, once earlier ones are settled.
 * @throws Refusal `gift_not_found`, `gift_has_no_receiver`, `notification_pending`, or as `refuseUnlessUsable`;
 * UnavailableError
 */
export async function resendGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  reason: string,
): Promise<Transacted> {
  return transact(deps.events, HISTORY_ONLY, notificationStream(giftId), context, async (_, history) => {
    const stream = await deps.events.read(giftStream(giftId));
    const { gift, payment } = await foundGift(deps, giftId, stream);
    refuseUnlessUsable(gift, { now: context.now, payment });
    if (!isSomebody(gift.issued.receiver)) throw new Refusal('gift_has_no_receiver');
    const { next, nextNumber } = notificationAttempts(stream, history);
    // The revision determines the receiver: a later reassignment notifies the new receiver itself.
    const gift_revision = stream.at(-1)?.revision;
    // The receiver of a gift that is charged and not issued yet is notified once it is issued, of a scheduled one once
    // it is released.
    if (gift_revision === undefined || next.do !== 'nothing' || isHeldBack(gift))
      throw new Refusal('notification_pending');
    refuseRepeats(history, 'supported_too_often', ({ type }) => type === 'NotificationRequested');
    return [
      {
        type: 'NotificationRequested',
        data: { transaction_id: gift.issued.transaction_id, attempt: nextNumber, gift_revision, reason },
      },
    ];
  });
}
