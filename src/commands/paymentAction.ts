/** Questions to the payment provider on behalf of a request. */
import type { Bus } from '../ports/bus.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../ports/bus.js';
import { PAYMENT_REQUESTS } from '../messages/payments.js';
import { isFailure } from '../messages/workerFailure.js';
import type { WorkerRequest } from '../messages/workerRequest.js';
import { UnavailableError } from '../ports/unavailable.js';

/** How long the provider may take, milliseconds. */
const ANSWER_MS = 10_000;
/** No refund of ours: to look it up finds all that are not ours. */
const NO_REFUND = { refund_id: 'none', attempt: 1, started_at: new Date(0).toISOString() };

/** Asks the payment provider on behalf of a request. */
export interface PaymentQuestions {
  /**
   * The secret with which the buyer authenticates (never logged or stored), and whether the payment waits for that;
   * `undefined`: the provider does not know the payment. Equal questions at a time share one answer.
   * @throws UnavailableError when the provider can't be asked
   */
  action(
    transactionId: string,
    paymentId: string,
  ): Promise<{ readonly clientSecret: string; readonly waiting: boolean } | undefined>;
  /** The transaction of a payment; `undefined`: the provider knows of none. @throws UnavailableError */
  transactionOf(paymentId: string): Promise<string | undefined>;
  /** Pence of a charge that were refunded at the provider and not by us. @throws UnavailableError */
  givenBackByOthers(provider: string, chargeId: string): Promise<number>;
}

export function paymentQuestions(bus: Bus): PaymentQuestions {
  const ask = async <Q extends object, R extends { readonly outcome: string }>(
    { subject, reply: check }: WorkerRequest<Q, R>,
    request: Q,
  ): Promise<R> => {
    const reply = await bus.request<unknown>(subject, request, { timeoutMs: ANSWER_MS }).catch((error: unknown) => {
      if (error instanceof DeadlineError || error instanceof NoRespondersError || error instanceof RemoteError)
        throw new UnavailableError('the payment provider cannot be asked', { cause: error });
      throw error;
    });
    const answer = check(reply);
    if (!isFailure(answer)) return answer;
    throw new UnavailableError(`the payment provider cannot be asked: ${answer.cause}`);
  };
  const askAction = async (transaction_id: string, payment_id: string): ReturnType<PaymentQuestions['action']> => {
    const reply = await ask(PAYMENT_REQUESTS.paymentAction, { transaction_id, payment_id });
    return reply.outcome === 'unknown' ? undefined : { clientSecret: reply.client_secret, waiting: reply.waiting };
  };
  const underWay = new Map<string, ReturnType<PaymentQuestions['action']>>();
  return {
    // A buyer who polls must not use up the provider's rate limit, which all charges share.
    async action(transactionId, paymentId) {
      const key = JSON.stringify([transactionId, paymentId]);
      let asked = underWay.get(key);
      if (asked === undefined) {
        asked = askAction(transactionId, paymentId).finally(() => underWay.delete(key));
        underWay.set(key, asked);
      }
      return asked;
    },
    async transactionOf(payment_id) {
      const reply = await ask(PAYMENT_REQUESTS.findPayment, { payment_id });
      return reply.outcome === 'unknown' ? undefined : reply.transaction_id;
    },
    async givenBackByOthers(provider, charge_id) {
      const reply = await ask(PAYMENT_REQUESTS.lookUpRefund, { ...NO_REFUND, provider, charge_id });
      return reply.outcome === 'never' ? (reply.others ?? 0) : 0;
    },
  };
}
