/** A log with what was bought, for tests of process managers and their steps. */
import { randomBytes, randomUUID } from 'node:crypto';
import { suite, type Test } from 'uvu';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { type PurchaseReceiver, transactionStream } from '../../../src/domain/purchase/events.js';
import type { EventStore, NewEvent, RecordedEvent } from '../../../src/ports/eventStore.js';
import { memoryEvents } from '../engines/memoryEvents.js';

/** What was bought. */
export interface Bought {
  readonly transactionId: string;
  readonly giftIds: readonly string[];
}

/** The log, with helpers for tests. */
export interface TestLog {
  readonly events: EventStore;
  /** Correlation id of what is bought and appended. */
  readonly correlationId: string;
  buy(
    receivers: readonly PurchaseReceiver[],
    options?: { reference?: string; price?: number; at?: string; correlationId?: string; sendAt?: string },
  ): Promise<Bought>;
  append(stream: string, type: string, data: object, at?: string, correlationId?: string): Promise<void>;
  /** The types of a stream's events. */
  types(stream: string): Promise<string[]>;
  /** Every event of some type in the log. */
  all(...types: string[]): Promise<RecordedEvent[]>;
}

const CORRELATION_ID = 'the-request';

/** So many hours before now. */
export const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();

/** An event of a test. */
export function eventOf(
  type: string,
  data: object,
  at = new Date().toISOString(),
  correlationId = CORRELATION_ID,
): NewEvent {
  return {
    id: randomUUID(),
    type,
    at,
    data,
    metadata: { commandId: randomUUID(), correlationId, by: { user: 'buyer' } },
  };
}

/** The helpers on a log. */
export function openTestLog(events: EventStore): TestLog {
  const self: TestLog = {
    events,
    correlationId: CORRELATION_ID,
    async buy(receivers, { reference = 'pm_card_visa', price = 250, at, correlationId, sendAt } = {}) {
      const transactionId = randomUUID();
      const seed = randomBytes(32).toString('hex');
      const data = {
        transaction_id: transactionId,
        seed,
        buyer_id: 'buyer',
        product_id: 'coffee',
        brand_id: 'beans',
        product_name: 'Flat white',
        sale_price: price,
        total: price * receivers.length,
        payment_reference: reference,
        expires_on: '2099-01-01',
        message: 'Enjoy',
        receivers,
        ...(sendAt === undefined ? {} : { send_at: sendAt }),
      };
      await self.append(transactionStream(transactionId), 'GiftsPurchased', data, at, correlationId);
      return { transactionId, giftIds: deriveGiftIds(seed, receivers.length).map(({ gift_id }) => gift_id) };
    },
    append: async (stream, type, data, at, correlationId) =>
      void (await events.append(stream, [eventOf(type, data, at, correlationId)], 'any')),
    types: async (stream) => (await events.read(stream)).map(({ type }) => type),
    async all(...types) {
      const found: RecordedEvent[] = [];
      for await (const batch of events.readAll(undefined, { types })) found.push(...batch.events);
      return found;
    },
  };
  return self;
}

/** A suite whose tests get a `log` in memory, each one of its own. */
export function logSuite(title: string): Test<{ log: TestLog }> {
  const test = suite<{ log: TestLog }>(title);
  test.before.each((context) => void (context.log = openTestLog(memoryEvents())));
  return test;
}
