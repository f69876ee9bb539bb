/** The buyer of a scheduled purchase names another time, or none (docs/api/purchases.md#scheduled-sending). */
import { transactionStream } from '../domain/purchase/events.js';
import { purchaseAggregate } from '../domain/purchase/state.js';
import { atOnce, reschedule, sendTime } from '../domain/purchase/sending.js';
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
  return transact(deps.events, purchaseAggregate, transactionStream(transactionId), context, (state, history) => {
    // Gifts that are sent already are refused before the requested time is checked.
    const none = reschedule(state, null);
    if (state.status === 'none' || sendAt === null) return none;
    const facts = { now, expires_on: state.purchase.expires_on };
    const time = sendAt === SEND_NOW ? atOnce(facts, 'send_at') : sendTime(sendAt, facts, 'send_at');
    const changed = reschedule(state, time);
    // `now` and null end the changes, so they are always accepted.
    if (changed.length > 0 && sendAt !== SEND_NOW)
      refuseRepeats(history, 'rescheduled_too_often', ({ type }) => type === 'SendRescheduled');
    return changed;
  });
}
