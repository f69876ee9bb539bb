import type { Logger } from 'pino';
import { clockMs } from '../lib/clock.js';
import type { Bus, Unsubscribe } from '../ports/bus.js';
import type { Records } from '../ports/readStore.js';
import { NOTIFICATION_REQUESTS } from '../messages/notifications.js';
import { PAYMENT_REQUESTS } from '../messages/payments.js';
import { RetryLaterError, type WorkerFailure } from '../messages/workerFailure.js';
import { MalformedMessageError, WORKERS_ALIVE, type WorkerRequest } from '../messages/workerRequest.js';
import type { NotificationProvider } from './notifications/provider.js';
import { simulatedNotifications } from './notifications/simulated.js';
import type { PaymentProvider } from './payments/provider.js';
import { simulatedPayments } from './payments/simulated.js';
import { RefusedError, ProviderError } from './providerErrors.js';

export interface WorkerDeps {
  readonly bus: Pick<Bus, 'serve'>;
  readonly records: Records;
  readonly logger: Logger;
  /** Default: simulated. */
  readonly payments?: PaymentProvider;
  /** Default: simulated. */
  readonly notifications?: NotificationProvider;
}

/** Serves the requests to providers on the bus. `close` lets running ones finish. @throws UnavailableError */
export async function startWorkers({
  bus,
  records,
  logger,
  ...providers
}: WorkerDeps): Promise<{ close(): Promise<void> }> {
  const payments = providers.payments ?? simulatedPayments(records, clockMs);
  const notifications = providers.notifications ?? (await simulatedNotifications(records, logger, clockMs));
  const serve = <Q extends object, R extends object>(
    { subject, queue, request: check }: WorkerRequest<Q, R>,
    handler: (request: Q) => Promise<R>,
  ): Promise<Unsubscribe> =>
    bus.serve<unknown>(subject, queue, async (message) => {
      try {
        return await handler(check(message));
      } catch (error) {
        if (!(error instanceof RetryLaterError)) logger.warn({ err: error, subject }, 'a message was not answered');
        const failure = failureOf(error);
        if (failure === undefined) throw error;
        return failure;
      }
    });
  // An unserved request would be retried for a day: a missing one does not compile.
  const served = {
    charge: serve(PAYMENT_REQUESTS.charge, (request) => payments.charge(request)),
    lookUpCharge: serve(PAYMENT_REQUESTS.lookUpCharge, (request) => payments.lookUp(request)),
    cancelCharge: serve(PAYMENT_REQUESTS.cancelCharge, (request) => payments.cancel(request)),
    paymentAction: serve(PAYMENT_REQUESTS.paymentAction, (request) => payments.action(request)),
    findPayment: serve(PAYMENT_REQUESTS.findPayment, (request) => payments.find(request)),
    refund: serve(PAYMENT_REQUESTS.refund, (request) => payments.refund(request)),
    lookUpRefund: serve(PAYMENT_REQUESTS.lookUpRefund, (request) => payments.lookUpRefund(request)),
    send: serve(NOTIFICATION_REQUESTS.send, (request) => notifications.send(request)),
    lookUpNotification: serve(NOTIFICATION_REQUESTS.lookUpNotification, (request) => notifications.lookUp(request)),
  } satisfies Readonly<
    Record<keyof typeof PAYMENT_REQUESTS | keyof typeof NOTIFICATION_REQUESTS, Promise<Unsubscribe>>
  >;
  const stops = await Promise.all(Object.values(served));
  // Last, so that what finds a worker alive is served.
  stops.push(await bus.serve(WORKERS_ALIVE.subject, WORKERS_ALIVE.queue, async () => ({})));
  return {
    async close() {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}

/** The answer after a failure; `undefined`: it is unknown what was done, so there is no answer. */
function failureOf(error: unknown): WorkerFailure | undefined {
  if (error instanceof RetryLaterError)
    return { outcome: 'retry_later', after_ms: error.afterMs, limited: error.limited, cause: error.message };
  if (error instanceof ProviderError && !error.outcomeUnknown)
    return { outcome: 'retry_later', after_ms: 0, limited: false, cause: error.message };
  // Another release sent it: a worker of that release may get it next.
  if (error instanceof MalformedMessageError)
    return { outcome: 'retry_later', after_ms: 0, limited: false, cause: error.message };
  if (error instanceof RefusedError) return { outcome: 'impossible', cause: error.message };
  return undefined;
}
