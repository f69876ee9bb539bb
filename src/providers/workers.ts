/** The workers of one process: they answer what process managers ask on the bus. */
import type { Logger } from 'pino';
import type { Bus, Unsubscribe } from '../ports/bus.js';
import type { Records } from '../ports/readStore.js';
import { type Check, checks, MalformedMessageError, QUEUES, SUBJECTS, type Trouble } from '../messages/messages.js';
import type { NotificationProvider } from './notifications/provider.js';
import { simulatedNotifications } from './notifications/simulated.js';
import type { PaymentProvider } from './payments/provider.js';
import { simulatedPayments } from './payments/simulated.js';
import { RetryLaterError, RefusedError, ProviderError } from './providerErrors.js';

/** What the workers work with. */
export interface WorkerDeps {
  readonly bus: Bus;
  /** Keeps the simulated providers' ledgers. */
  readonly records: Records;
  readonly logger: Logger;
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number;
  /** Default: the simulated one. */
  readonly payments?: PaymentProvider;
  /** Default: the simulated one. */
  readonly notifications?: NotificationProvider;
}

/** Starts answering. `close` lets what runs finish. @throws UnavailableError */
export async function startWorkers({
  bus,
  records,
  logger,
  now = Date.now,
  ...providers
}: WorkerDeps): Promise<{ close(): Promise<void> }> {
  const payments = providers.payments ?? simulatedPayments(records, now);
  const notifications = providers.notifications ?? (await simulatedNotifications(records, logger, now));
  const answer = <P>(
    subject: string,
    queue: string,
    check: Check<P>,
    handler: (request: P) => Promise<object>,
  ): Promise<Unsubscribe> =>
    bus.serve<unknown>(subject, queue, async (message) => {
      try {
        return await handler(check(message));
      } catch (error) {
        // What a limit holds back is no fault.
        if (!(error instanceof RetryLaterError)) logger.warn({ err: error, subject }, 'a message was not answered');
        const trouble = troubleOf(error);
        if (trouble === undefined) throw error;
        return trouble;
      }
    });
  // Whoever asks on a subject that nobody answers tries for a day: one that is missing here does not compile.
  const answering = {
    charge: answer(SUBJECTS.charge, QUEUES.payments, checks.chargeRequest, (request) => payments.charge(request)),
    lookUpCharge: answer(SUBJECTS.lookUpCharge, QUEUES.payments, checks.chargeLookup, (request) =>
      payments.lookUp(request),
    ),
    cancelCharge: answer(SUBJECTS.cancelCharge, QUEUES.payments, checks.chargeCancellation, (request) =>
      payments.cancel(request),
    ),
    paymentAction: answer(SUBJECTS.paymentAction, QUEUES.payments, checks.paymentActionRequest, (request) =>
      payments.action(request),
    ),
    findPayment: answer(SUBJECTS.findPayment, QUEUES.payments, checks.paymentSearch, (request) =>
      payments.find(request),
    ),
    refund: answer(SUBJECTS.refund, QUEUES.payments, checks.refundRequest, (request) => payments.refund(request)),
    lookUpRefund: answer(SUBJECTS.lookUpRefund, QUEUES.payments, checks.refundLookup, (request) =>
      payments.lookUpRefund(request),
    ),
    send: answer(SUBJECTS.send, QUEUES.notifications, checks.sendRequest, (request) => notifications.send(request)),
    lookUpNotification: answer(SUBJECTS.lookUpNotification, QUEUES.notifications, checks.sendLookup, (request) =>
      notifications.lookUp(request),
    ),
  } satisfies Readonly<Record<keyof typeof SUBJECTS, Promise<Unsubscribe>>>;
  const stops = await Promise.all(Object.values(answering));
  return {
    async close() {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}

/** What a failure answers; `undefined`: nobody knows what was done, so it is no answer. */
function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof RetryLaterError)
    return { outcome: 'later', after_ms: error.afterMs, held: error.held, cause: error.message };
  if (error instanceof ProviderError && !error.outcomeUnknown)
    return { outcome: 'later', after_ms: 0, held: false, cause: error.message };
  // The same message would be as senseless the next time.
  if (error instanceof RefusedError || error instanceof MalformedMessageError)
    return { outcome: 'impossible', cause: error.message };
  return undefined;
}
