import { decideNews, type PaymentNews, unsureCharge } from '../domain/paymentNews.js';
import { transactionStream } from '../domain/purchase/events.js';
import { type MadePurchase, purchaseAggregate } from '../domain/purchase/state.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';
import type { PaymentQuestions } from './paymentAction.js';

/** `known`: the provider event was nothing new; `foreign`: it is about no transaction of ours. */
type NewsOutcome = 'recorded' | 'known' | 'foreign';

export const PROVIDER_USER = 'system:payment-provider';

class Foreign extends Error {}

/**
 * `questions`: absent where the provider has no ledger.
 * @throws UnavailableError, also where the provider must be asked and can't be; ConflictError
 */
export async function notePaymentNews(
  events: EventStore,
  transactionId: string,
  news: PaymentNews,
  context: CommandContext,
  questions?: Pick<PaymentQuestions, 'givenBackByOthers'>,
): Promise<NewsOutcome> {
  try {
    const stream = transactionStream(transactionId);
    const { own, replayed } = await transact(events, purchaseAggregate, stream, context, async (state) => {
      if (state.status === 'none') throw new Foreign();
      return decideNews(state, questions === undefined ? news : await madeSure(state, news, questions));
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
  news: PaymentNews,
  questions: Pick<PaymentQuestions, 'givenBackByOthers'>,
): Promise<PaymentNews> {
  if (news.kind !== 'refunded' && news.kind !== 'refund failed') return news;
  const charge = unsureCharge(state, news);
  return charge === undefined ? news : { ...news, others: await questions.givenBackByOthers(news.provider, charge) };
}
