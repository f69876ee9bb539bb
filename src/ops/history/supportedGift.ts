import type { FoundGift } from '../../commands/giftSource.js';
import { foundGift } from '../../commands/loadGift.js';
import type { SupportDeps } from '../../commands/supportAction.js';
import { presentReceiver } from '../../domain/gift/decisions.js';
import { giftStream, receiverKind, type ReceiverKind } from '../../domain/gift/events.js';
import { shownCause } from '../../domain/supportActions.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { withMaskedTexts } from './personalTexts.js';
import { type EventView, eventView } from './eventView.js';

export interface SupportedGift {
  readonly gift_id: string;
  readonly transaction_id: string;
  readonly gift_status: 'pending' | 'sent' | 'redeemed' | 'cancelled';
  readonly receiver: ReceiverKind;
  readonly receiver_id: string | null;
  /** The last valid day, in UTC. */
  readonly expiry_date: string;
  /** Causes of the blocks, the oldest first. */
  readonly blocked_by: readonly string[];
  /** The gift that support gave in its place; null: none. */
  readonly replaced_by: string | null;
  /** Events of the command, appended now or at its first run. */
  readonly events: readonly EventView[];
}

/** Status of a gift as support sees it. */
export function supportedStatus({ gift, payment }: Pick<FoundGift, 'gift' | 'payment'>): SupportedGift['gift_status'] {
  if (payment !== 'charged') return payment === 'pending' ? 'pending' : 'cancelled';
  return gift.status === 'issued' ? 'sent' : gift.status;
}

/**
 * The gift right after `own`, the events of a command, so that a repeat of the command gets the same answer.
 * @throws Refusal `gift_not_found`; UnavailableError
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
  const receiver = presentReceiver(gift);
  return {
    gift_id: giftId,
    transaction_id: gift.issued.transaction_id,
    gift_status: supportedStatus({ gift, payment }),
    receiver: receiverKind(receiver),
    receiver_id: receiver.user_id ?? null,
    expiry_date: gift.issued.expires_on,
    blocked_by: (gift.blockedBy ?? []).map(shownCause),
    replaced_by: gift.replacedBy?.gift_id ?? null,
    // The history has each event's own position; the command knows only that of its last event.
    events: own.map((event) => {
      const recorded = history.find(({ id }) => id === event.id) ?? event;
      return eventView(withMaskedTexts(recorded), { personal: false });
    }),
  };
}
