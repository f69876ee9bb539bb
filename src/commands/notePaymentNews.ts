/** NotePaymentNews: what the payment provider tells by itself goes into the transaction's stream, once. */
import { fold } from '../domain/decider.js';
import { decideNews, type PaymentNews } from '../domain/paymentNews.js';
import { purchaseAggregate, transactionStream } from '../domain/purchase.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { handle } from './handle.js';

/** What came of it: `recorded` now; `known`: nothing new in it; `foreign`: no transaction of ours. */
export type NewsOutcome = 'recorded' | 'known' | 'foreign';

/** Who such events are by. */
export const PROVIDER_USER = 'system:payment-provider';

class Foreign extends Error {}

/** Notes the news. @throws UnavailableError; ConflictError after many lost races */
export async function notePaymentNews(events: EventStore, transactionId: string, news: PaymentNews, context: CommandContext): Promise<NewsOutcome> {
  try {
    const { own, replayed } = await handle(events, transactionStream(transactionId), context, (history) => {
      const state = fold(purchaseAggregate, history);
      if (state.status === 'none') throw new Foreign();
      return decideNews(state, news);
    });
    return own.length > 0 && !replayed ? 'recorded' : 'known';
  } catch (error) {
    if (error instanceof Foreign) return 'foreign';
    throw error;
  }
}
