import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import { type CommandContext, partOf, recordable, ATTEMPTS, transact, upToOwn } from '../../src/commands/transact.js';
import type { Aggregate, DomainEvent } from '../../src/domain/decider.js';
import { Refusal } from '../../src/domain/refusal.js';
import { type Appended, ConflictError, type EventStore, type NewEvent } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { type Attribute, switchTracing } from '../../src/tracing/spans.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('command loop');
const context = (more: Partial<CommandContext> = {}): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'u' },
  now: '2026-01-01T00:00:00.000Z',
  ...more,
});
const event = { type: 'Happened', data: { n: 1 } };
/** Counts events. */
const COUNT: Aggregate<number, DomainEvent> = { initial: 0, evolve: (count) => count + 1 };

test('appends what is decided, with who, when and why', async () => {
  const events = memoryEvents();
  const given = context({ requestId: 'r', causationId: 'e', bodyHash: 'h', simulated: true });
  const { own, history, replayed } = await transact(events, COUNT, 's', given, () => [event]);
  const [stored] = await events.read('s');
  assert.deepEqual([own.length, history.length, replayed], [1, 1, false]);
  assert.deepEqual({ ...own[0] }, { ...stored });
  assert.deepEqual(stored?.metadata, {
    commandId: given.commandId,
    bodyHash: 'h',
    correlationId: 'c',
    causationId: 'e',
    requestId: 'r',
    by: { user: 'u' },
    simulated: true,
  });
  assert.equal(stored.at, given.now);
});

test('events appended together are given in their places in the stream', async () => {
  const events = memoryEvents();
  await transact(events, COUNT, 's', context(), () => [event]);
  const { own, history } = await transact(events, COUNT, 's', context(), () => [event, event]);
  assert.deepEqual(
    own.map(({ revision }) => revision),
    [1, 2],
  );
  const places = (stream: readonly { readonly id: string; readonly revision: number }[]): unknown =>
    stream.map(({ id, revision }) => [id, revision]);
  assert.deepEqual(places(history), places(await events.read('s')));
});

test('appends nothing where nothing is decided', async () => {
  const events = {
    ...memoryEvents(),
    read: async () => [],
    append: () => assert.fail('appended'),
  } as EventStore;
  assert.deepEqual(await transact(events, COUNT, 's', context(), () => []), {
    own: [],
    history: [],
    replayed: false,
    state: 0,
  });
});

test('finds a repeated command’s own events and does not decide again', async () => {
  const events = memoryEvents();
  const given = context({ bodyHash: 'h' });
  const first = await transact(events, COUNT, 's', given, () => [event]);
  await transact(events, COUNT, 's', context(), () => [event]);
  const again = await transact(events, COUNT, 's', given, () => assert.fail('decided again'));
  assert.deepEqual([again.replayed, again.own.map(({ id }) => id)], [true, first.own.map(({ id }) => id)]);
  await assert.rejects(
    transact(events, COUNT, 's', { ...given, bodyHash: 'other' }, () => []),
    (error: unknown) => error instanceof Refusal && error.code === 'idempotency_key_reused',
  );
});

test('decides again on the new state after a lost race', async () => {
  const events = memoryEvents();
  const seen: number[] = [];
  await transact(events, COUNT, 's', context(), async (count, history) => {
    assert.equal(count, history.length);
    seen.push(count);
    if (seen.length <= 3) await transact(events, COUNT, 's', context(), () => [event]);
    return [event];
  });
  assert.deepEqual(seen, [0, 1, 2, 3]);
  assert.equal((await events.read('s')).length, 4);
});

test('gives up after many lost races', async () => {
  let tries = 0;
  const losing = {
    ...memoryEvents(),
    append: async () => {
      tries++;
      throw new ConflictError('s', 'none', 3);
    },
  } as EventStore;
  await assert.rejects(
    transact(losing, COUNT, 's', context(), () => [event]),
    ConflictError,
  );
  assert.equal(tries, ATTEMPTS);
});

test('repeats an unknown outcome with the same ids, and no known failure', async () => {
  const events = memoryEvents();
  const tried: string[][] = [];
  let appended: Appended | undefined;
  const flaky = (failures: number, outcomeUnknown: boolean): EventStore =>
    ({
      ...events,
      read: events.read.bind(events),
      append: async (stream: string, batch: readonly NewEvent[], expected: 'none') => {
        tried.push(batch.map(({ id }) => id));
        // Stored at the first try all the same: the worst case of an unknown outcome. A repeat is recognised by its
        // ids.
        if (outcomeUnknown && tried.length === 1) appended = await events.append(stream, batch, expected);
        if (tried.length <= failures || appended === undefined)
          throw new UnavailableError('no answer', { outcomeUnknown });
        return appended;
      },
    }) as EventStore;
  const { own } = await transact(flaky(2, true), COUNT, 's', context(), () => [event]);
  assert.equal(tried.length, 3);
  assert.equal(new Set(tried.flat()).size, 1);
  assert.deepEqual(
    (await events.read('s')).map(({ id }) => id),
    own.map(({ id }) => id),
  );
  tried.length = 0;
  appended = undefined;
  await assert.rejects(
    transact(flaky(9, true), COUNT, 't', context(), () => [event]),
    UnavailableError,
  );
  assert.equal(tried.length, 3);
  tried.length = 0;
  appended = undefined;
  await assert.rejects(
    transact(flaky(9, false), COUNT, 'u', context(), () => [event]),
    (error: unknown) => error instanceof UnavailableError && !error.outcomeUnknown,
  );
  assert.equal(tried.length, 1);
});

test('an outcome that one try left unknown stays unknown, and is tried again, whatever later tries say', async () => {
  const said = [true, false, false];
  const events = {
    ...memoryEvents(),
    read: async () => [],
    append: async () => {
      throw new UnavailableError('no answer', {
        outcomeUnknown: said.shift() === true,
        publicReason: 'its disk is full',
      });
    },
  } as EventStore;
  await assert.rejects(
    transact(events, COUNT, 's', context(), () => [event]),
    (error: UnavailableError) => error.outcomeUnknown && error.publicReason === 'its disk is full',
  );
  assert.deepEqual(said, []);
});

test('names the types of its events in its span, and whether they are of an earlier run', async () => {
  const spans: [string, Readonly<Record<string, Attribute>>][] = [];
  switchTracing({
    run: async ({ name }, work) =>
      work({
        rename: () => undefined,
        fail: () => undefined,
        set: (attributes) => void spans.push([name, attributes]),
      }),
    current: () => undefined,
  });
  try {
    const events = memoryEvents();
    const given = context();
    for (const _ of ['first', 'repeat'])
      await transact(events, COUNT, 'gift-1', given, () => [event, { ...event, type: 'Ended' }]);
  } finally {
    switchTracing(undefined);
  }
  const types = { 'gift.event.types': 'Happened Ended' };
  assert.deepEqual(spans, [
    ['command gift', { ...types, 'gift.replayed': false }],
    ['command gift', { ...types, 'gift.replayed': true }],
  ]);
});

test('finds its own events where the repeat of an unknown outcome meets a conflict', async () => {
  const events = memoryEvents();
  let tries = 0;
  const flaky: EventStore = {
    ...events,
    append: async (...of) => {
      const appended = await events.append(...of);
      if (++tries === 1) throw new UnavailableError('no answer', { outcomeUnknown: true });
      return appended;
    },
  };
  const { own, replayed } = await transact(flaky, COUNT, 's', context(), () => [event]);
  assert.deepEqual([own.map(({ id }) => id), replayed], [events.log.map(({ id }) => id), true]);
  assert.equal(events.log.length, 1);
});

test('refuses a command without an id', async () => {
  const events = memoryEvents();
  await assert.rejects(
    transact(events, COUNT, 'gift-1', context({ commandId: '' }), () => [event]),
    /a command on a gift has no id/,
  );
  assert.deepEqual(events.log, []);
});

test('shows the history up to the command’s own events, and all of it where it has none', async () => {
  const events = memoryEvents();
  for (const given of [context(), context(), context()]) await transact(events, COUNT, 's', given, () => [event]);
  const history = await events.read('s');
  assert.deepEqual(upToOwn({ own: history.slice(1, 2), history }), history.slice(0, 2));
  assert.deepEqual(upToOwn({ own: [], history }), history);
});

test('notes the version of an event whose type has upcasters', () => {
  const upcasters = { GiftIssued: [(data: object) => data] };
  const [issued, other] = recordable([{ ...event, type: 'GiftIssued' }, event], context(), upcasters);
  assert.deepEqual([issued?.metadata.schema, issued?.metadata.correlationId], [2, 'c']);
  assert.equal('schema' in (other?.metadata ?? {}), false);
});

test('a part of a command has an id of its own, and no hash of the body', () => {
  const { commandId, bodyHash, ...whole } = context({ requestId: 'r', bodyHash: 'h' });
  const { commandId: own, ...part } = partOf({ commandId, ...whole, ...(bodyHash === undefined ? {} : { bodyHash }) });
  assert.deepEqual(part, whole);
  assert.match(own, /^[0-9a-f-]{36}$/);
  assert.notEqual(own, commandId);
});

test.run();
