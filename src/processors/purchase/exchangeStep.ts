/** Pays for a replacement by the gift that it replaces (docs/decisions/replaced-gifts.md#decision). */
import { giftSource } from '../../commands/giftSource.js';
import { decideExchange, declineExchange, paidByGift } from '../../commands/replaceGift.js';
import { transactOn } from '../../commands/transact.js';
import {
  type GiftsPurchased,
  type PaymentCharged,
  type PaymentDeclined,
  transactionStream,
} from '../../domain/purchase/events.js';
import { Refusal } from '../../domain/refusal.js';
import { declinedFor } from '../../domain/supportActions.js';
import { NotYetError, type Reason, type StepDeps } from '../runner/index.js';

/** Milliseconds to wait for the issue of a replaced gift. */
const UNISSUED_MS = 1_000;

/**
 * A purchase that replaces a gift is paid for by that gift, which is exchanged for it once. This is the rest of
 * support's command, so it is done as that command, by its caller.
 */
export async function exchange(
  { events, writer, mayAct, now }: Pick<StepDeps, 'events' | 'writer' | 'mayAct' | 'now'>,
  purchase: GiftsPurchased['data'],
  reason: Reason,
): Promise<PaymentCharged | PaymentDeclined> {
  const { gift_id = '' } = purchase.replaces ?? {};
  const [bought] = await events.read(transactionStream(purchase.transaction_id), { limit: 1 });
  if (bought === undefined) throw new Error('a purchase is charged and was never made');
  const { commandId, correlationId, by, bodyHash } = bought.metadata;
  const context = {
    commandId,
    correlationId,
    causationId: bought.id,
    by,
    now: new Date(now()).toISOString(),
    ...(bodyHash === undefined ? {} : { bodyHash }),
  };
  const unissued = (): never => {
    throw new NotYetError('the replaced gift has not been issued yet', UNISSUED_MS, { mayNeverCome: true });
  };
  // Unless another reason is found: the command gave the gift up for a later purchase of its own.
  let code = 'gift_already_replaced';
  try {
    await transactOn(events, giftSource(events, gift_id, unissued), context, async (found) => {
      const declined = declinedFor(found.gift, purchase.transaction_id);
      if (declined !== undefined) {
        code = declined;
        return [];
      }
      // By the command's own time, so that neither refuses at the end of a day what the other does.
      const decided = await decideExchange(events, found, purchase, bought.at);
      mayAct();
      return decided;
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    code = error.code;
  }
  // The command may have given the gift up since it was read: the gift's stream decides which of both came first.
  const exchanged = await declineExchange(events, purchase, code, async (source, decide) =>
    writer.transact(source, reason, (found) => {
      const decided = decide(found);
      if (decided.length > 0) mayAct();
      return decided;
    }),
  );
  return exchanged ? paidByGift(gift_id) : { type: 'PaymentDeclined', data: { provider: 'replacement', code } };
}
