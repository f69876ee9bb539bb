/** The buyer of a scheduled purchase names another time, or none (docs/api/purchases.md#scheduled-sending). */
import { fold } from '../domain/decider.js';
import { giftStream } from '../domain/gift/events.js';
import { giftAggregate } from '../domain/gift/state.js';
import { deriveGiftIds, type GiftIds } from '../domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../domain/purchase/events.js';
import { purchaseAggregate } from '../domain/purchase/state.js';
import { atOnce, reschedule, sendTime } from '../domain/purchase/sending.js';
import { inParallel } from '../lib/async/inParallel.js';
import type { EventStore } from '../ports/eventStore.js';
import { type CommandContext, type Transacted, transact } from './transact.js';
import { refuseRepeats } from './refuseRepeats.js';

/** Value of `sendAt` for sending the gifts at once. */
export const SEND_NOW = 'now';

/**
 * `sendAt`: a time with its zone, `SEND_NOW`, or null (nothing is sent before another time is named).
 * @throws Refusal `nothing_to_send`, `invalid_send_at`, `rescheduled_too_often`; UnavailableError
 */
export async function rescheduleSend(
  deps: { readonly events: EventStore },
  transactionId: string,
  context: CommandContext,
  sendAt: string | null,
): Promise<Transacted> {
  const { now } = context;
  return transact(deps.events, purchaseAggregate, transactionStream(transactionId), context, async (state, history) => {
    // Gifts that are sent already are refused before the requested time is checked.
    const none = reschedule(state, null);
    if (state.status === 'none' || sendAt === null) return none;
    const { purchase } = state;
    const timeBy = (expires_on: string): string =>
      sendAt === SEND_NOW ? atOnce({ now, expires_on }) : sendTime(sendAt, { now, expires_on });
    const day = timeBy(NEVER).slice(0, 10);
    const isExtended = day > purchase.expires_on && (await isValidOn(deps.events, purchase, day));
    const changed = reschedule(state, timeBy(isExtended ? day : purchase.expires_on));
    // `now` and null end the changes, so they are always accepted.
    if (changed.length > 0 && sendAt !== SEND_NOW)
      refuseRepeats(history, 'rescheduled_too_often', ({ type }) => type === 'SendRescheduled');
    return changed;
  });
}

/** Last valid day of gifts that do not expire. */
const NEVER = '9999-12-31';
const READS_AT_ONCE = 32;

/** Whether support has extended a gift so that it can still be used on this day. */
async function isValidOn(
  events: Pick<EventStore, 'read'>,
  { seed, receivers }: GiftsPurchased['data'],
  day: string,
): Promise<boolean> {
  const found = new AbortController();
  const look = async ({ gift_id }: GiftIds): Promise<void> => {
    const gift = fold(giftAggregate, await events.read(giftStream(gift_id)));
    if (gift.status === 'issued' && gift.issued.expires_on >= day) found.abort();
  };
  await inParallel(deriveGiftIds(seed, receivers.length), READS_AT_ONCE, look, found.signal);
  return found.signal.aborted;
}
