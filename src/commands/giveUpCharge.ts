import { transactionStream } from '../domain/purchase/events.js';
import { purchaseAggregate } from '../domain/purchase/state.js';
import { settleCharge } from '../domain/purchase/decisions.js';
import { giveUpDebit, walletAggregate, walletStream } from '../domain/wallet.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { readPurchase } from './readStreams.js';
import { isExchanged, paidByGift } from './replaceGift.js';
import { transact } from './transact.js';

const BY_SUPPORT = { provider: 'support', code: 'discarded' } as const;

/**
 * Declines an open charge; a wallet that had paid is credited, and a replacement whose gift was given up for it stays
 * paid. No event for a settled charge. A person must first check whether the card's provider took the money. A charge
 * that the provider reports later is refunded, and the reconciliation finds the rest.
 * @throws UnavailableError
 */
export async function giveUpCharge(events: EventStore, transactionId: string, context: CommandContext): Promise<void> {
  const state = await readPurchase(events, transactionId);
  if (state.status !== 'pending') return;
  const { payment_reference, total, replaces } = state.purchase;
  if (state.chargeBy?.kind !== 'card' && replaces === undefined) {
    // A card's reference has no wallet stream.
    await transact(events, walletAggregate, walletStream(payment_reference), context, (wallet, history) =>
      history.length === 0 ? [] : giveUpDebit(wallet, { transaction_id: transactionId, amount: total }),
    );
  }
  await transact(events, purchaseAggregate, transactionStream(transactionId), context, async (purchase) =>
    settleCharge(
      purchase,
      replaces !== undefined && (await isExchanged(events, state.purchase))
        ? paidByGift(replaces.gift_id)
        : { type: 'PaymentDeclined', data: BY_SUPPORT },
    ),
  );
}
