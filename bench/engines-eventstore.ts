/**
 * The event store on EventStoreDB beside the bare client in the same run: appends with 1, 16 and 64 in flight, streams read, the log read back and followed.
 * Rounds of both alternate and the median round counts: at least 0.8 of the bare client's. On the server at TEST_EVENTSTORE_URL; without one on the tests'
 * double, in this very process, which shows that the bench works and judges nothing.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { EventStoreDBClient, excludeSystemEvents, jsonEvent, NO_STREAM, START } from '@eventstore/db-client';
import { openEventStoreDb } from '../src/adapters/eventstoredb/eventStore.js';
import type { NewEvent } from '../src/ports/eventStore.js';
import { startEventStoreDouble } from '../test/support/eventStoreDouble.js';
import { median, table, verdict } from './support/report.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, amount: { type: 'string', default: '2000' } } });
const ROUNDS = Number(values.rounds);
const AMOUNT = Number(values.amount);
const LOG_EVENTS = AMOUNT * 10;
const LEAST = 0.8;

const double = process.env.TEST_EVENTSTORE_URL ? undefined : await startEventStoreDouble();
const url = process.env.TEST_EVENTSTORE_URL || double!.url;
const store = await openEventStoreDb({ url });
const client = EventStoreDBClient.connectionString(url);

function newEvent(): NewEvent {
  return {
    id: randomUUID(),
    type: 'GiftRedeemed',
    at: new Date().toISOString(),
    data: { redemptionId: randomUUID(), locationId: randomUUID(), merchantId: randomUUID(), brandId: randomUUID(), value: 1_000, productName: 'A cup of coffee' },
    metadata: { commandId: randomUUID(), correlationId: randomUUID(), requestId: randomUUID(), by: { user: randomUUID(), roles: ['redeem'] } },
  };
}

/** The same as the client wants it. */
function bareEvent({ id, type, at, data, metadata }: NewEvent): ReturnType<typeof jsonEvent> {
  return jsonEvent({ id, type, data: data as Record<string, unknown>, metadata: { at, ...metadata } as unknown as Record<string, unknown> });
}

/** Runs `work` for each of the items, so many at once. @returns how many a second */
async function inFlight<T>(count: number, items: readonly T[], work: (item: T) => Promise<unknown>): Promise<number> {
  const began = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (next < items.length) await work(items[next++]!);
    }),
  );
  return (items.length / (performance.now() - began)) * 1_000;
}

interface Contest {
  readonly what: string;
  readonly bare: () => Promise<number>;
  readonly ours: () => Promise<number>;
}

const streams = Array.from({ length: AMOUNT }, () => `bench-${randomUUID()}`);
for (let n = 0; n < streams.length; n += 64) await Promise.all(streams.slice(n, n + 64).map(async (stream) => store.append(stream, [newEvent(), newEvent(), newEvent()], 'none')));
const start = await store.end();
for (let n = 0; n < LOG_EVENTS; n += 500) await store.append(`bench-${randomUUID()}`, Array.from({ length: 500 }, newEvent), 'none');
const fromPosition = start === undefined ? START : { commit: BigInt(start), prepare: BigInt(start) };

function appending(count: number): Contest {
  const items = (): NewEvent[] => Array.from({ length: count === 1 ? AMOUNT / 4 : AMOUNT }, newEvent);
  return {
    what: `append, ${count} in flight (a second)`,
    bare: async () => inFlight(count, items(), async (event) => client.appendToStream(`bench-${randomUUID()}`, bareEvent(event), { expectedRevision: NO_STREAM })),
    ours: async () => inFlight(count, items(), async (event) => store.append(`bench-${randomUUID()}`, [event], 'none')),
  };
}

/** Takes events until there were as many as were written. @returns how many a second */
async function reading(counts: () => AsyncIterable<number>): Promise<number> {
  const began = performance.now();
  let seen = 0;
  for await (const count of counts()) {
    seen += count;
    if (seen >= LOG_EVENTS) break;
  }
  if (seen < LOG_EVENTS) throw new Error(`${seen} of ${LOG_EVENTS} events came`);
  return (seen / (performance.now() - began)) * 1_000;
}

const contests: Contest[] = [
  ...[1, 16, 64].map(appending),
  {
    what: 'streams of 3 events read, 16 in flight (a second)',
    bare: async () =>
      inFlight(16, streams, async (stream) => {
        let count = 0;
        for await (const { event } of client.readStream(stream)) if (event !== undefined) count += 1;
        if (count !== 3) throw new Error(`${count} events`);
      }),
    ours: async () =>
      inFlight(16, streams, async (stream) => {
        const { length } = await store.read(stream);
        if (length !== 3) throw new Error(`${length} events`);
      }),
  },
  {
    what: 'log read back (events a second)',
    bare: async () =>
      reading(async function* () {
        for await (const { event } of client.readAll({ fromPosition, maxCount: LOG_EVENTS + 1 })) if (event !== undefined) yield 1;
      }),
    ours: async () =>
      reading(async function* () {
        for await (const { events } of store.readAll(start)) yield events.length;
      }),
  },
  {
    what: 'log followed (events a second)',
    bare: async () => {
      const subscription = client.subscribeToAll({ fromPosition, filter: excludeSystemEvents() });
      try {
        return await reading(async function* () {
          for await (const { event } of subscription) if (event !== undefined) yield 1;
        });
      } finally {
        await subscription.unsubscribe();
      }
    },
    ours: async () =>
      reading(async function* () {
        for await (const { events } of store.follow(start)) yield events.length;
      }),
  },
];

const rows = [];
for (const { what, bare, ours } of contests) {
  await bare();
  await ours();
  const figures: { bare: number; ours: number }[] = [];
  for (let n = 0; n < ROUNDS; n++) figures.push(n % 2 === 0 ? { bare: await bare(), ours: await ours() } : { ours: await ours(), bare: await bare() });
  const [bareRate, oursRate] = [median(figures.map((one) => one.bare)), median(figures.map((one) => one.ours))];
  rows.push({ what, bare: bareRate, ours: oursRate, ratio: oursRate / bareRate });
}
console.log(double === undefined ? 'On a server of EventStoreDB:' : "On the tests' double:");
table(rows);
if (double === undefined) for (const { what, ratio } of rows) verdict(what, ratio, { atLeast: LEAST });
else console.log('No verdict: set TEST_EVENTSTORE_URL to a server.');

await store.close();
await client.dispose();
await double?.close();
