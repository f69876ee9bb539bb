import type { Bus } from '../ports/bus.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../ports/bus.js';
import { PAYMENT_REQUESTS } from '../messages/payments.js';
import { isFailure } from '../messages/workerFailure.js';
import { type Check, MalformedMessageError, type WorkerRequest } from '../messages/workerRequest.js';
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

/** @throws UnavailableError where a worker of another release answered, and this one can't read it */
function checked<R>(check: Check<R>, reply: unknown): R {
  try {
    return check(reply);
  } catch (error) {
    if (!(error instanceof MalformedMessageError)) throw error;
    throw new UnavailableError('the payment provider cannot be asked', { cause: error });
  }
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
    const answer = checked(check, reply);
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
