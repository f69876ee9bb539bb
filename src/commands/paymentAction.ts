import type { Bus } from '../ports/bus.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../ports/bus.js';
import { PAYMENT_REQUESTS } from '../messages/payments.js';
import { isFailure } from '../messages/workerFailure.js';
import { MalformedMessageError, type WorkerRequest } from '../messages/workerRequest.js';
import { UnavailableError } from '../ports/unavailable.js';

const ANSWER_MS = 10_000;
/** A refund that does not exist: its lookup counts all external refunds of a charge. */
export const NO_REFUND = { refund_id: 'none', attempt: 1, started_at: new Date(0).toISOString() };

export interface PaymentQuestions {
  /**
   * The secret with which the buyer authenticates (never logged or stored), and whether the payment waits for that.
   * `undefined`: unknown to the provider. @throws UnavailableError
   */
  action(
    transactionId: string,
    paymentId: string,
  ): Promise<{ readonly clientSecret: string; readonly waiting: boolean } | undefined>;
  /** Id of the payment's transaction; `undefined`: unknown to the provider. @throws UnavailableError */
  transactionOf(paymentId: string): Promise<string | undefined>;
  /** Sum of a charge's external refunds in pence. @throws UnavailableError */
  refundedByOthers(provider: string, chargeId: string): Promise<number>;
}

/** What leaves a question without an answer; a malformed one is that of a worker of another release. */
const UNANSWERED = [DeadlineError, NoRespondersError, RemoteError, MalformedMessageError];

export function paymentQuestions(bus: Bus): PaymentQuestions {
  const ask = async <Q extends object, R extends { readonly outcome: string }>(
    { subject, reply: check }: WorkerRequest<Q, R>,
    request: Q,
  ): Promise<R> => {
    const answer = await bus
      .request<unknown>(subject, request, { timeoutMs: ANSWER_MS })
      .then(check)
      .catch((error: unknown) => {
        if (!UNANSWERED.some((kind) => error instanceof kind)) throw error;
        throw new UnavailableError('the payment provider cannot be asked', { cause: error });
      });
    if (!isFailure(answer)) return answer;
    throw new UnavailableError(`the payment provider cannot be asked: ${answer.cause}`);
  };
  const askAction = async (transaction_id: string, payment_id: string): ReturnType<PaymentQuestions['action']> => {
    const reply = await ask(PAYMENT_REQUESTS.paymentAction, { transaction_id, payment_id });
    return reply.outcome === 'unknown' ? undefined : { clientSecret: reply.client_secret, waiting: reply.waiting };
  };
  const underWay = new Map<string, ReturnType<PaymentQuestions['action']>>();
  return {
    // Concurrent equal questions share one answer: a polling buyer must not use up the provider's rate limit.
    async action(transactionId, paymentId) {
      const key = JSON.stringify([transactionId, paymentId]);
      let pending = underWay.get(key);
      if (pending === undefined) {
        pending = askAction(transactionId, paymentId).finally(() => underWay.delete(key));
        underWay.set(key, pending);
      }
      return pending;
    },
    async transactionOf(payment_id) {
      const reply = await ask(PAYMENT_REQUESTS.findPayment, { payment_id });
      return reply.outcome === 'unknown' ? undefined : reply.transaction_id;
    },
    async refundedByOthers(provider, charge_id) {
      const reply = await ask(PAYMENT_REQUESTS.lookUpRefund, { ...NO_REFUND, provider, charge_id });
      return reply.outcome === 'never' ? (reply.others ?? 0) : 0;
    },
  };
}
