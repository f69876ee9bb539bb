/** The workers of one process: they answer what process managers ask on the bus. */
import type { Logger } from 'pino';
import type { Bus, Unsubscribe } from '../ports/bus.js';
import type { Records } from '../ports/readStore.js';
import { type Check, checks, QUEUES, SUBJECTS } from './messages.js';
import { simulatedNotifications } from './notifications/simulated.js';
import { simulatedPayments } from './payments/simulated.js';

/** What the workers work with. */
export interface WorkerDeps {
  readonly bus: Bus;
  /** Keeps the simulated providers' ledgers. */
  readonly records: Records;
  readonly logger: Logger;
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number;
}

/** Starts answering. `close` lets what runs finish. @throws UnavailableError */
export async function startWorkers({ bus, records, logger, now = Date.now }: WorkerDeps): Promise<{ close(): Promise<void> }> {
  const payments = simulatedPayments(records, now);
  const notifications = await simulatedNotifications(records, logger, now);
  const answer = <P>(subject: string, queue: string, check: Check<P>, handler: (request: P) => Promise<object>): Promise<Unsubscribe> =>
    bus.serve<unknown>(subject, queue, async (message) => {
      try {
        return await handler(check(message));
      } catch (error) {
        logger.warn({ err: error, subject }, 'a message was not answered');
        throw error;
      }
    });
  const stops = await Promise.all([
    answer(SUBJECTS.charge, QUEUES.payments, checks.chargeRequest, (request) => payments.charge(request)),
    answer(SUBJECTS.lookUpCharge, QUEUES.payments, checks.chargeLookup, (request) => payments.lookUp(request)),
    answer(SUBJECTS.send, QUEUES.notifications, checks.sendRequest, (request) => notifications.send(request)),
    answer(SUBJECTS.lookUpNotification, QUEUES.notifications, checks.sendLookup, (request) => notifications.lookUp(request)),
  ]);
  return {
    async close() {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}
