import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { EventStore, NewEvent, RecordedEvent } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { EventStoreFixture } from '../support/engines/eventStoreEvents.js';
import {
  event,
  events,
  eventsOf,
  failureOf,
  idsOf,
  newStream,
  readUntil,
  within,
} from '../support/engines/eventStoreEvents.js';

/** A store whose engine is a server that can go away. */
export interface ServedFixture extends EventStoreFixture {
  readonly server: {
    /** It is gone at once, and its connections with it. */
    readonly down: () => Promise<void>;
    /** It is back, at the same address and with the same log. */
    readonly up: () => Promise<void>;
    /** It says nothing any more, and hears nothing; connections stay. */
    readonly freeze: () => void;
    /** It goes on where it stood. */
    readonly thaw: () => void;
  };
  /** How long the store waits for a silent server, in ms. */
  readonly timeoutMs: number;
}

type Check = (store: EventStore, fixture: ServedFixture) => Promise<void>;

/** The port's guarantees when the engine goes away, as tests of an adapter whose engine can. */
export function eventStoreOutageContract(name: string, open: () => Promise<ServedFixture>): void {
  const test = suite(`EventStore outages: ${name}`);
  for (const [promise, check] of Object.entries(PROMISES)) {
    test(promise, async () => {
      const fixture = await open();
      try {
        await check(fixture.store, fixture);
      } finally {
        fixture.server.thaw();
        await fixture.server.up();
        await fixture.destroy();
      }
    });
  }
  test.run();
}

/** Repeats an append, with the same ids and expectation, until it is answered. */
async function appendAtLast(
  store: EventStore,
  stream: string,
  batch: readonly NewEvent[],
  expected: 'none' | 'any' | number,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await store.append(stream, batch, expected);
      return;
    } catch (error) {
      if (!(error instanceof UnavailableError) || tries === 100) throw error;
      await sleep(50);
    }
  }
}

/** Appends to streams of its own until stopped; its appends are in the order of each stream. */
function writer(store: EventStore, prefix: string): { stop: () => Promise<string[]> } {
  const ids: string[] = [];
  let on = true;
  const writing = (async () => {
    for (let n = 0; on; n++) {
      const batch = events(2);
      await appendAtLast(store, `${prefix}-${n % 3}`, batch, n < 3 ? 'none' : Math.floor(n / 3) * 2 - 1);
      ids.push(...idsOf(batch));
      await sleep(2);
    }
  })();
  return {
    async stop() {
      on = false;
      await writing;
      return ids;
    },
  };
}

/** Everything once, each stream's revisions without a gap, positions rising. */
function assertWhole(seen: readonly RecordedEvent[], ids: readonly string[]): void {
  assert.equal(idsOf(seen).toSorted(), ids.toSorted());
  const next = new Map<string, number>();
  for (const [index, { stream, revision, position }] of seen.entries()) {
    assert.is(revision, next.get(stream) ?? 0);
    next.set(stream, revision + 1);
    assert.ok(index === 0 || position > seen[index - 1]!.position);
  }
}

async function surviving(store: EventStore, trouble: () => Promise<void>): Promise<void> {
  const prefix = newStream();
  const start = await store.end();
  const stopping = new AbortController();
  const last = event('Last');
  const filters = [
    { streams: [prefix] },
    { streams: [prefix], types: ['Tested', 'Last'] },
    { types: ['Tested', 'Last'], streams: [`${prefix}-`] },
  ];
  const following = filters.map(async (filter) =>
    readUntil(store.follow(start, filter, { signal: stopping.signal }), (all) => all.at(-1)?.id === last.id, 60_000),
  );
  const writers = [1, 2, 3].map((n) => writer(store, `${prefix}-${n}`));
  await sleep(100);
  await trouble();
  await sleep(100);
  const ids = (await Promise.all(writers.map(async ({ stop }) => stop()))).flat();
  await appendAtLast(store, `${prefix}-last`, [last], 'none');
  ids.push(last.id);
  for (const seen of await Promise.all(following)) assertWhole(seen, ids);
  assertWhole(await eventsOf(store.readAll(start, { streams: [prefix] })), ids);
}

const PROMISES: Readonly<Record<string, Check>> = {
  async 'writers and followers recover from a killed server, without loss or repetition'(store, { server }) {
    await surviving(store, async () => {
      for (let kills = 0; kills < 3; kills++) {
        await server.down();
        await sleep(150);
        await server.up();
        await sleep(400);
      }
    });
  },

  async 'and after it was merely silent, for short and for long'(store, { server, timeoutMs }) {
    await surviving(store, async () => {
      for (const silence of [timeoutMs / 4, timeoutMs * 2.5]) {
        server.freeze();
        await sleep(silence);
        server.thaw();
        await sleep(300);
      }
    });
  },

  async 'calls of a server that is gone are refused in time, and work again when it is back'(
    store,
    { server, timeoutMs },
  ) {
    const [stream, another] = [newStream(), newStream()];
    const [old, fresh] = [events(2), events(2)];
    await store.append(stream, old, 'none');
    await server.down();
    const requested: (() => Promise<unknown>)[] = [
      async () => store.append(another, fresh, 'none'),
      async () => store.read(stream),
      async () => store.end(),
      async () => store.ping(),
      async () => eventsOf(store.readAll(undefined)),
    ];
    const failures = await within(timeoutMs + 8_000, Promise.all(requested.map(async (ask) => failureOf(ask()))));
    for (const failure of failures) assert.instance(failure, UnavailableError);
    await server.up();
    await appendAtLast(store, another, fresh, 'none');
    assert.equal(idsOf(await store.read(another)), idsOf(fresh));
    assert.equal(idsOf(await store.read(stream)), idsOf(old));
    await store.ping();
  },

  async 'an append to a silent server ends in time, outcome unknown; a repeat stores it once'(
    store,
    { server, timeoutMs },
  ) {
    const [stream, open] = [newStream(), newStream()];
    const [first, second] = [events(2), events(3)];
    await store.append(stream, [event()], 'none');
    server.freeze();
    const failures = await within(
      timeoutMs + 8_000,
      Promise.all([
        failureOf(store.append(stream, first, 0)),
        failureOf(store.append(open, second, 'any')),
        failureOf(store.read(stream)),
      ]),
    );
    for (const failure of failures) assert.instance(failure, UnavailableError);
    assert.is((failures[0] as UnavailableError).outcomeUnknown, true);
    server.thaw();
    await appendAtLast(store, stream, first, 0);
    await appendAtLast(store, open, second, 'any');
    await sleep(timeoutMs);
    assert.equal(idsOf(await store.read(stream)).slice(1), idsOf(first));
    assert.equal(idsOf(await store.read(open)), idsOf(second));
  },

  async 'a repeat after a restart of the server is no second append, whatever was expected'(store, { server }) {
    const appends = (['none', 'any', 0] as const).map((expected) => ({
      expected,
      stream: newStream(),
      batch: events(3),
    }));
    await store.append(appends[2]!.stream, [event()], 'none');
    const first = [];
    for (const { stream, batch, expected } of appends) first.push(await store.append(stream, batch, expected));
    await server.down();
    await server.up();
    for (const [index, { stream, batch, expected }] of appends.entries()) {
      await appendAtLast(store, stream, batch, expected);
      assert.equal(await store.append(stream, batch, expected), first[index]);
      assert.is((await store.read(stream)).length, expected === 0 ? 4 : 3);
    }
  },

  async 'close does not wait for a silent server longer than for its answers'(store, { server, timeoutMs }) {
    const stream = newStream();
    await store.append(stream, [event()], 'none');
    const following = eventsOf(store.follow(await store.end(), { types: ['None such'] }));
    await sleep(50);
    server.freeze();
    const append = store.append(stream, [event()], 0).then(
      () => 'stored',
      (error: unknown) => (error instanceof UnavailableError ? 'unavailable' : error),
    );
    const reading = failureOf(store.read(stream));
    await within(timeoutMs + 8_000, store.close());
    assert.is(await append, 'unavailable');
    assert.instance(await reading, UnavailableError);
    assert.equal(await within(20_000, following), []);
  },
};
