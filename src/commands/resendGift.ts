/** ResendGift: tells a gift's receiver again, deliberately, once for each time it is asked for. */
import { giftStream, isSomebody, refuseUnlessUsable } from '../domain/gift.js';
import { notificationAggregate, notificationStream } from '../domain/notification.js';
import { Refusal } from '../domain/refusal.js';
import { notificationAttempts } from '../domain/notificationAttempts.js';
import type { CareDeps } from './supportAction.js';
import type { CommandContext } from './context.js';
import { foundGift } from './loadGift.js';
import { type Transacted, transact } from './transact.js';

/**
 * Asks for one more telling of the gift's present receiver; the notification process does it. Only once the tellings
 * before are settled: sent, failed or discarded.
 * @throws Refusal `gift_not_found`, `gift_has_no_receiver`, `gift_being_told`, or the state's (a gift that can't be
 * used is not told of); UnavailableError
 */
export async function resendGift(
  deps: CareDeps,
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
    const gift_revision = stream.at(-1)?.revision;
    // Charged and not issued yet: it is told once it is.
    if (gift_revision === undefined || next.do !== 'nothing') throw new Refusal('gift_being_told');
    // The gift may go to another receiver before this stands in the log: that one is told by its reassignment, and not
    // once more by this.
    return [
      {
        type: 'NotificationRequested',
        data: { transaction_id: gift.issued.transaction_id, attempt: nextNumber, gift_revision, reason },
      },
    ];
  });
}
