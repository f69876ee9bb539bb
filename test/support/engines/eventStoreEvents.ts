import { randomUUID } from 'node:crypto';
import type { EventBatch, EventStore, NewEvent, RecordedEvent } from '../../../src/ports/eventStore.js';

/** A store to test, on a log that may already hold other events. */
export interface EventStoreFixture {
  readonly store: EventStore;
  /** The same log again, once `store` is closed. */
  readonly reopen: () => Promise<EventStore>;
  /** Closes and removes everything. */
  readonly destroy: () => Promise<void>;
}

/** Checks one promise of the port on a fresh fixture. */
export type Promised = (store: EventStore, fixture: EventStoreFixture) => Promise<void>;

/** A new event; its id is new unless one is given. */
export function event(type = 'Tested', data: object = {}, id: string = randomUUID()): NewEvent {
  return {
    id,
    type,
    at: '2026-01-02T03:04:05.678Z',
    data,
    metadata: { commandId: `command-${id}`, correlationId: 'correlation', by: { user: 'tester', roles: ['redeem'] } },
  };
}

/** `count` events, numbered in their data from 0. */
export function events(count: number, type?: string): NewEvent[] {
  return Array.from({ length: count }, (_, n) => event(type, { n }));
}

/** A stream name that no other test has. */
export function newStream(prefix = 'test'): string {
  return `${prefix}-${randomUUID()}`;
}

/** All batches of a feed that ends by itself. */
export async function batchesOf(feed: AsyncIterable<EventBatch>): Promise<EventBatch[]> {
  const batches: EventBatch[] = [];
  for await (const batch of feed) batches.push(batch);
  return batches;
}

/** All events of a feed that ends by itself. */
export async function eventsOf(feed: AsyncIterable<EventBatch>): Promise<RecordedEvent[]> {
  return (await batchesOf(feed)).flatMap((batch) => batch.events);
}

/** Reads a feed until `done` accepts its events, or fails after `ms`. */
export async function readUntil(
  feed: AsyncIterable<EventBatch>,
  done: (events: RecordedEvent[], batch: EventBatch) => boolean,
  ms = 30_000,
): Promise<RecordedEvent[]> {
  const seen: RecordedEvent[] = [];
  const reading = (async () => {
    for await (const batch of feed) {
      seen.push(...batch.events);
      if (done(seen, batch)) return seen;
    }
    throw new Error(`the feed ended after ${seen.length} events`);
  })();
  return within(ms, reading, () => `${seen.length} events came`);
}

/** The promise's outcome, or an error after `ms`. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  what: () => string = () => 'still waiting',
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what()} after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The rejection of a promise; fails when it resolves. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`expected a failure, got ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}

/** The ids, in order. */
export function idsOf(list: readonly { id: string }[]): string[] {
  return list.map(({ id }) => id);
}
