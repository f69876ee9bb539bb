/** The event store on EventStoreDB beside the bare client: appends, streams read, the log read back and followed. */
import { randomUUID } from 'node:crypto';
import { EventStoreDBClient, excludeSystemEvents, jsonEvent, NO_STREAM, START } from '@eventstore/db-client';
import { openEventStoreDb } from '../../src/adapters/eventstoredb/eventStore.js';
import type { NewEvent } from '../../src/ports/eventStore.js';
import { startEventStoreDouble } from '../../test/support/engines/eventStoreDouble.js';
import { type Arena, type Contest, inFlight } from '../support/contest.js';

function newEvent(): NewEvent {
  return {
    id: randomUUID(),
    type: 'GiftRedeemed',
    at: new Date().toISOString(),
    data: {
      redemptionId: randomUUID(),
      locationId: randomUUID(),
      merchantId: randomUUID(),
      brandId: randomUUID(),
      value: 1_000,
      productName: 'A cup of coffee',
    },
    metadata: {
      commandId: randomUUID(),
      correlationId: randomUUID(),
      requestId: randomUUID(),
      by: { user: randomUUID(), roles: ['redeem'] },
    },
  };
}

/** The same as the client wants it. */
function bareEvent({ id, type, at, data, metadata }: NewEvent): ReturnType<typeof jsonEvent> {
  return jsonEvent({
    id,
    type,
    data: data as Record<string, unknown>,
    metadata: { at, ...metadata } as unknown as Record<string, unknown>,
  });
}

/**
 * On the server at TEST_EVENTSTORE_URL; without one on the tests' double, in this very process, which shows that the
 * bench works and judges nothing.
 * @param amount streams that are read, and appends of a round; ten times as many events in the log that is read
 */
export async function eventStoreArena(amount: number): Promise<Arena> {
  const given = process.env['TEST_EVENTSTORE_URL'] ?? '';
  const double = given === '' ? await startEventStoreDouble() : undefined;
  const url = double?.url ?? given;
  const store = await openEventStoreDb({ url });
  const client = EventStoreDBClient.connectionString(url);
  const logEvents = amount * 10;

  const streams = Array.from({ length: amount }, () => `bench-${randomUUID()}`);
  for (let n = 0; n < streams.length; n += 64)
    await Promise.all(
      streams
        .slice(n, n + 64)
        .map(async (stream) => store.append(stream, [newEvent(), newEvent(), newEvent()], 'none')),
    );
  const start = await store.end();
  for (let n = 0; n < logEvents; n += 500)
    await store.append(`bench-${randomUUID()}`, Array.from({ length: 500 }, newEvent), 'none');
  const fromPosition = start === undefined ? START : { commit: BigInt(start), prepare: BigInt(start) };

  const appending = (count: number): Contest => {
    const items = (): NewEvent[] => Array.from({ length: count === 1 ? amount / 4 : amount }, newEvent);
    return {
      what: `append, ${count} in flight (a second)`,
      bare: async () =>
        inFlight(count, items(), async (event) =>
          client.appendToStream(`bench-${randomUUID()}`, bareEvent(event), { expectedRevision: NO_STREAM }),
        ),
      ours: async () =>
        inFlight(count, items(), async (event) => store.append(`bench-${randomUUID()}`, [event], 'none')),
    };
  };

  /** Takes events until there were as many as were written. @returns how many a second */
  const reading = async (counts: () => AsyncIterable<number>): Promise<number> => {
    const began = performance.now();
    let seen = 0;
    for await (const count of counts()) {
      seen += count;
      if (seen >= logEvents) break;
    }
    if (seen < logEvents) throw new Error(`${seen} of ${logEvents} events came`);
    return (seen / (performance.now() - began)) * 1_000;
  };

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
      bare: async () => {
        // To its end: one that is left early keeps the client from closing.
        const began = performance.now();
        let seen = 0;
        for await (const { event } of client.readAll({ fromPosition, maxCount: logEvents }))
          if (event !== undefined) seen += 1;
        if (seen < logEvents) throw new Error(`${seen} of ${logEvents} events came`);
        return (seen / (performance.now() - began)) * 1_000;
      },
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

  return {
    engine:
      double === undefined ? 'EventStoreDB, the server at TEST_EVENTSTORE_URL' : "EventStoreDB, the tests' double",
    judged: double === undefined,
    contests,
    async close() {
      await store.close();
      await client.dispose();
      await double?.close();
    },
  };
}
