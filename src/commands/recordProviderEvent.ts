import { decideProviderEvent, type ProviderEvent, unsureCharge } from '../domain/purchase/providerEvent.js';
import { transactionStream } from '../domain/purchase/events.js';
import { type MadePurchase, purchaseAggregate } from '../domain/purchase/state.js';
import type { EventStore } from '../ports/eventStore.js';
import { type CommandContext, transact } from './transact.js';
import type { PaymentQuestions } from './paymentAction.js';

/** `known`: the provider event was nothing new; `foreign`: it is about no transaction of ours. */
type ProviderEventOutcome = 'recorded' | 'known' | 'foreign';

export const PROVIDER_USER = 'system:payment-provider';

class Foreign extends Error {}

/**
 * `questions`: absent where the provider has no ledger.
 * @throws UnavailableError, also where the provider must be asked and can't be; ConflictError
 */
export async function recordProviderEvent(
  events: EventStore,
  transactionId: string,
  providerEvent: ProviderEvent,
  context: CommandContext,
  questions?: Pick<PaymentQuestions, 'refundedByOthers'>,
): Promise<ProviderEventOutcome> {
  try {
    const stream = transactionStream(transactionId);
    const { own, replayed } = await transact(events, purchaseAggregate, stream, context, async (state) => {
      if (state.status === 'none') throw new Foreign();
      return decideProviderEvent(
        state,
        questions === undefined ? providerEvent : await madeSure(state, providerEvent, questions),
      );
    });
    return own.length > 0 && !replayed ? 'recorded' : 'known';
  } catch (error) {
    if (error instanceof Foreign) return 'foreign';
    throw error;
  }
}

/**
 * The total in a late provider event may include refunds that have failed since: then the provider's own list decides.
 */
async function madeSure(
  state: MadePurchase,
  providerEvent: ProviderEvent,
  questions: Pick<PaymentQuestions, 'refundedByOthers'>,
): Promise<ProviderEvent> {
  if (providerEvent.kind !== 'refunded' && providerEvent.kind !== 'refund failed') return providerEvent;
  const charge = unsureCharge(state, providerEvent);
  return charge === undefined
    ? providerEvent
    : { ...providerEvent, others: await questions.refundedByOthers(providerEvent.provider, charge) };
}
