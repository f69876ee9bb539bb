/** A gift after a support action. */
import { foundGift } from '../../commands/loadGift.js';
import type { SupportDeps } from '../../commands/supportAction.js';
import { giftStream } from '../../domain/gift/events.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { type EventView, eventView } from './eventView.js';

export interface SupportedGift {
  readonly gift_id: string;
  readonly transaction_id: string;
  /** As in the API. */
  readonly gift_status: 'pending' | 'sent' | 'redeemed' | 'cancelled';
  /** Of the gift: a user, whoever has a phone number, or whoever claims it. */
  readonly receiver: 'user' | 'phone number' | 'nobody';
  readonly receiver_id: string | null;
  /** The last valid day (UTC). */
  readonly expiry_date: string;
  /** In order of time. */
  readonly blocked_by: readonly string[];
  /** Events of this command, now or at its first run; empty: the gift was so already. */
  readonly events: readonly EventView[];
}

/**
 * The gift right after `own`: a repeated command gets the same answer. @throws Refusal `gift_not_found`;
 * UnavailableError
 */
export async function supportedGift(
  deps: SupportDeps,
  giftId: string,
  own: readonly RecordedEvent[],
): Promise<SupportedGift> {
  const stream = giftStream(giftId);
  const last = own.findLast((event) => event.stream === stream)?.revision ?? Number.POSITIVE_INFINITY;
  const history = await deps.events.read(stream);
  const { gift, payment } = await foundGift(
    deps,
    giftId,
    history.filter(({ revision }) => revision <= last),
  );
  const { user_id, phone_hash } = gift.issued.receiver;
  return {
    gift_id: giftId,
    transaction_id: gift.issued.transaction_id,
    gift_status:
      payment === 'pending'
        ? 'pending'
        : payment === 'declined'
          ? 'cancelled'
          : gift.status === 'issued'
            ? 'sent'
            : gift.status,
    receiver: user_id !== undefined ? 'user' : phone_hash !== undefined ? 'phone number' : 'nobody',
    receiver_id: user_id ?? null,
    expiry_date: gift.issued.expires_on,
    blocked_by: gift.blockedBy ?? [],
    // Of events appended together, a command knows only the last one's position.
    events: own.map((event) => eventView(history.find(({ id }) => id === event.id) ?? event, { personal: false })),
  };
}
