/** Behaviour of EventStoreDB and its client that breaks the port's guarantees, each with our remedy. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventStoreDBClient } from '@eventstore/db-client';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Connection } from '../../../src/adapters/eventstoredb/connection.js';
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/eventStore.js';
import { ALL_OURS } from '../../../src/adapters/eventstoredb/filters.js';
import { positionOf } from '../../../src/adapters/eventstoredb/records.js';
import { subscribe } from '../../../src/adapters/eventstoredb/requests.js';
import { subscribed } from '../../../src/adapters/eventstoredb/subscription.js';
import type { EventStore, RecordedEvent } from '../../../src/ports/eventStore.js';
import { ConflictError, EventTooLargeError } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { EventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import { startEventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import type { AppendFault } from '../../support/engines/eventStoreDoubleStreams.js';
import { eventResponse, ODD_CHECKPOINT } from '../../support/engines/eventStoreDoubleStreams.js';
import {
  batchesOf,
  event,
  events,
  eventsOf,
  failureOf,
  idsOf,
  newStream,
  readUntil,
  within,
} from '../../support/engines/eventStoreEvents.js';
import { FOR_EVER_MS, until } from '../../support/assertions/until.js';

const TIMEOUT_MS = 400;
/** Where nothing is to wait for its end, in ms. */
const LONG_MS = FOR_EVER_MS;

type Opened = { store: EventStore; double: EventStoreDouble; another: () => Promise<EventStore> };

async function onDouble(check: (opened: Opened) => Promise<void>, timeoutMs = TIMEOUT_MS): Promise<void> {
  const double = await startEventStoreDouble();
  const stores: EventStore[] = [];
  const another = async (): Promise<EventStore> => {
    const store = await openEventStoreDb({ url: double.url, timeoutMs });
    stores.push(store);
    return store;
  };
  try {
    await check({ store: await another(), double, another });
  } finally {
    double.way.thaw();
    for (const store of stores) await store.close();
    await double.close();
  }
}

const appends = suite('EventStoreDB: appends');

for (const fault of [
  'cutBefore',
  'cutAfter',
  'timeoutBefore',
  'timeoutAfter',
  'notReady',
] as const satisfies AppendFault[]) {
  appends(`is tried again, and stored once, after: ${fault}`, () =>
    onDouble(async ({ store, double }) => {
      for (const expected of ['none', 'any', 0] as const) {
        const stream = newStream();
        if (expected === 0) await store.append(stream, [event()], 'none');
        const batch = events(3);
        double.switches.appends.push(fault);
        const { revision, position } = await store.append(stream, batch, expected);
        const read = await store.read(stream);
        assert.equal(idsOf(read).slice(expected === 0 ? 1 : 0), idsOf(batch));
        assert.equal([revision, position], [read.at(-1)!.revision, read.at(-1)!.position]);
      }
    }),
  );
}

appends('an unanswered append is given up by our own deadline, and the same again finds it stored', () =>
  onDouble(async ({ store, double }) => {
    const [stream, batch] = [newStream(), events(2)];
    double.switches.appends.push('unanswered');
    const began = performance.now();
    const appended = store.append(stream, batch, 'none');
    // The first try is given up; the second finds the first.
    assert.is((await appended).revision, 1);
    assert.ok(performance.now() - began >= TIMEOUT_MS);
    assert.is((await store.read(stream)).length, 2);
  }),
);

appends('an answer that comes too late harms nothing', () =>
  onDouble(async ({ store, double }) => {
    const [stream, batch] = [newStream(), events(2)];
    double.switches.appends.push({ lateMs: TIMEOUT_MS * 2 });
    assert.is((await store.append(stream, batch, 'none')).revision, 1);
    const others = Array.from({ length: 20 }, async (_, n) =>
      sleep(n * 30).then(async () => store.append(newStream(), [event()], 'none')),
    );
    await Promise.all(others);
    assert.is((await store.read(stream)).length, 2);
  }),
);

appends('an answer that comes too late is not taken for that of another append', () =>
  onDouble(async ({ store, double }) => {
    double.switches.appends.push({ lateMs: TIMEOUT_MS * 2 });
    const given = store.append(newStream(), events(2), 'none');
    const appendSlowly = async (): Promise<void> => {
      for (let n = 0; n < 6; n++) {
        double.switches.appends.push({ lateMs: TIMEOUT_MS / 2 });
        assert.is((await store.append(newStream(), events(5), 'none')).revision, 4);
      }
    };
    // A call that is silent would be ended.
    const others = [appendSlowly()];
    await sleep(TIMEOUT_MS * 1.2);
    // One of these waits when the answer comes, with the number of the append that was given up.
    others.push(appendSlowly(), appendSlowly());
    await Promise.all(others);
    assert.is((await given).revision, 1);
  }),
);

appends('the end of one connection leaves appends on others alone, also of another server', () =>
  onDouble(async ({ store, double }) => {
    const other = await startEventStoreDouble();
    const away = await openEventStoreDb({ url: other.url, timeoutMs: TIMEOUT_MS });
    try {
      other.switches.appends.push({ lateMs: 150 });
      const waiting = away.append('a', [event()], 'none');
      await sleep(20);
      double.switches.appends.push('cutAfter', 'cutAfter');
      await Promise.all([store.append(newStream(), [event()], 'none'), store.append(newStream(), [event()], 'none')]);
      assert.is((await waiting).revision, 0);
      assert.is((await away.read('a')).length, 1);
    } finally {
      await away.close();
      await other.close();
    }
  }),
);

appends('a repeat with any expectation is recognised when the server has forgotten its ids', () =>
  onDouble(async ({ store, double }) => {
    const [stream, batch] = [newStream(), events(3)];
    await store.append(stream, events(1_200), 'none');
    const first = await store.append(stream, batch, 'any');
    await store.append(stream, events(700), 'any');
    await double.restart();
    await store.ping();
    assert.equal(await store.append(stream, batch, 'any'), first);
    assert.is((await store.read(stream)).length, 1_903);
  }),
);

appends('any expectation holds though some of the ids stand there', () =>
  onDouble(async ({ store }) => {
    const stream = newStream();
    const [a, b, c] = [event(), event(), event()];
    await store.append(stream, [a, b], 'none');
    await store.append(stream, [event()], 'any');
    assert.is((await store.append(stream, [b, c], 'any')).revision, 4);
    assert.equal(idsOf(await store.read(stream)).slice(3), idsOf([b, c]));
  }),
);

appends('the same append twice at once waits for none that the server drops', () =>
  onDouble(async ({ store }) => {
    const [stream, batch] = [newStream(), events(3)];
    const [one, two] = await Promise.all([store.append(stream, batch, 'none'), store.append(stream, batch, 'none')]);
    assert.equal(one, two);
  }, LONG_MS),
);

appends('a repeat from two processes at once is stored once', () =>
  onDouble(async ({ store, another }) => {
    const [other, stream, batch] = [await another(), newStream(), events(3)];
    await other.ping();
    const [one, two] = await Promise.all([store.append(stream, batch, 'none'), other.append(stream, batch, 'none')]);
    assert.equal(one, two);
    assert.is((await store.read(stream)).length, 3);
  }),
);

appends('a node that is no leader names the leader, and the append goes there', () =>
  onDouble(async ({ store, double }) => {
    const leader = await startEventStoreDouble({ clusterOf: double });
    try {
      await store.append('before', [event()], 'none');
      double.switches.leader = { host: '127.0.0.1', port: leader.port };
      assert.is((await store.append('after', [event()], 'none')).revision, 0);
      assert.is((await store.read('before')).length, 1);
      assert.is((await eventsOf(store.readAll(undefined))).length, 2);
      assert.ok(leader.way.made > 0);
      await store.close();
    } finally {
      await leader.close();
    }
  }),
);

for (const [what, refuse] of [
  ['a node that leads no more', { code: 5, details: 'Leader info available', exception: 'not-leader' }],
  ['a time limit of the server', { code: 10, details: 'Operation timed out: Request timed out' }],
] as const) {
  appends(`a call that ends with all appends on it, by ${what}, says of none that it was not stored`, () =>
    onDouble(async ({ store, double }) => {
      const stream = newStream();
      double.switches.appends.push({ lateMs: 200 });
      const stored = failureOf(store.append(stream, [event()], 'none'));
      await until(async () => (await double.log.read(stream, 0, 1)) !== undefined);
      double.switches.refuse = refuse;
      const other = failureOf(store.append(newStream(), [event()], 'none'));
      await sleep(50);
      // Nothing is tried again once it closes.
      await store.close();
      for (const error of [await stored, await other])
        assert.equal([(error as Error).name, (error as UnavailableError).outcomeUnknown], ['UnavailableError', true]);
    }, LONG_MS),
  );
}

appends('an append of which only the place can not be read may be stored', () =>
  onDouble(async ({ store, double }) => {
    const [stream, other, batch] = [newStream(), newStream(), events(2)];
    await store.append(stream, batch, 'none');
    await double.log.remove(stream, false);
    // Its events are known to the server, and can't be read: the log's end is asked for their place.
    const deletedBatch = async (): Promise<unknown> => store.append(stream, batch, 'none');
    await store.append(other, batch.slice(0, 1), 'none');
    const conflicting = async (): Promise<unknown> => store.append(other, events(1), 'none');
    for (const append of [deletedBatch, conflicting]) {
      // The log was seen to be unsealed just before.
      await store.append(newStream(), [event()], 'none');
      double.switches.refuseReads = { code: 14, details: 'Server Is Not Ready' };
      const error = (await failureOf(append())) as UnavailableError;
      double.switches.refuseReads = undefined;
      assert.equal([error.name, error.outcomeUnknown], ['UnavailableError', true]);
    }
  }),
);

appends('what the server finds too large is told as such, and a wrong id as it is', () =>
  onDouble(async ({ store, double }) => {
    (double.switches as { maxAppendBytes: number }).maxAppendBytes = 2_000;
    assert.instance(await failureOf(store.append(newStream(), events(100), 'none')), EventTooLargeError);
    const error = (await failureOf(store.append(newStream(), [event('Tested', {}, 'no-uuid')], 'none'))) as Error;
    assert.match(error.message, /can't append to .*Guid/);
    assert.not.instance(error, UnavailableError);
  }),
);

appends('data that is no JSON is refused at once, and so is an append without events', () =>
  onDouble(async ({ store }) => {
    assert.instance(
      await within(LONG_MS / 2, failureOf(store.append(newStream(), [event('Big', { n: 1n })], 'none'))),
      TypeError,
    );
    assert.instance(await failureOf(store.append(newStream(), [], 'none')), RangeError);
  }, LONG_MS),
);

appends('refused access is not tried again', () =>
  onDouble(async ({ store, double }) => {
    double.switches.appends.push('accessDenied');
    assert.instance(
      await within(LONG_MS / 2, failureOf(store.append(newStream(), [event()], 'none'))),
      UnavailableError,
    );
    double.switches.refuse = { code: 7, details: 'Access Denied', exception: 'access-denied' };
    assert.match(((await within(LONG_MS / 2, failureOf(store.read('a')))) as Error).message, /refuses access/);
    double.switches.refuse = { code: 3, details: 'not so' };
    assert.match(((await within(LONG_MS / 2, failureOf(store.read('a')))) as Error).message, /not so/);
  }, LONG_MS),
);

const deleted = suite('EventStoreDB: streams that others deleted');

deleted('a deleted stream is empty, its revisions go on, and repeats are recognised', () =>
  onDouble(async ({ store, double }) => {
    const [stream, batch] = [newStream(), events(2)];
    await store.append(stream, events(3), 'none');
    await double.log.remove(stream, false);
    assert.equal(await store.read(stream), []);
    const appended = await store.append(stream, batch, 'none');
    assert.is(appended.revision, 4);
    assert.equal(await store.append(stream, batch, 'none'), appended);
    assert.equal(idsOf(await store.read(stream)), idsOf(batch));
    const conflict = await failureOf(store.append(stream, [event()], 'none'));
    assert.instance(conflict, ConflictError);
    assert.is((conflict as ConflictError).actual, 4);
    assert.is((await eventsOf(store.readAll(undefined))).length, 5, 'the log still has them');
  }),
);

deleted("a repeat of what was deleted is known all the same, and stands before the log's end", () =>
  onDouble(async ({ store, double }) => {
    const [stream, batch] = [newStream(), events(3)];
    await store.append(stream, batch, 'none');
    await double.log.remove(stream, false);
    await store.append(newStream(), [event()], 'none');
    const position = await store.end();
    for (const [repeat, expected, revision] of [
      [batch, 'none', 2],
      [batch, 'any', 2],
      [batch.slice(1), 0, 2],
      [batch.slice(0, 2), 'none', 1],
    ] as const) {
      assert.equal(await store.append(stream, repeat, expected), { revision, position });
    }
    assert.equal(await store.read(stream), []);
  }),
);

deleted('any expectation holds in a deleted stream, though it held some of the ids', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    const batch = events(3);
    await store.append(stream, batch.slice(0, 2), 'none');
    await double.log.remove(stream, false);
    assert.is((await within(LONG_MS / 2, store.append(stream, batch, 'any'))).revision, 4);
    assert.equal(idsOf(await store.read(stream)), idsOf(batch));
  }, LONG_MS),
);

deleted('one deleted for good is empty, and takes no more events', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    await store.append(stream, [event()], 'none');
    await double.log.remove(stream, true);
    assert.equal(await store.read(stream), []);
    for (const expected of ['none', 'any', 0] as const)
      assert.match(((await failureOf(store.append(stream, [event()], expected))) as Error).message, /was deleted/);
    assert.is((await eventsOf(store.readAll(undefined))).length, 1);
  }),
);

const feeds = suite('EventStoreDB: feeds');

feeds('marks of the server, links and events that are no JSON are passed by', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    const raw = (
      type: string,
      contentType = 'application/json',
    ): { id: string; type: string; contentType: string; data: Buffer; metadata: Buffer } => ({
      id: crypto.randomUUID(),
      type,
      contentType,
      data: Buffer.from('{}'),
      metadata: Buffer.alloc(0),
    });
    await double.log.append('$ce-test', [raw('$>')], 'any');
    await double.log.append('$custom', [raw('Tested')], 'any');
    await double.log.append(stream, [raw('$>'), raw('Image', 'application/octet-stream'), raw('Foreign')], 'any');
    const ours = event();
    await store.append(stream, [ours], 2);
    for (const filter of [
      {},
      { types: ['Tested', 'Image', '$>', 'Foreign'] },
      { streams: [''] },
      { streams: [stream, '$'] },
    ]) {
      const read = await eventsOf(store.readAll(undefined, filter));
      assert.equal(
        read.map(({ type }) => type),
        ['Foreign', 'Tested'],
      );
      assert.match(read[0]!.at, /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/);
      assert.equal(read[0]!.metadata, {});
    }
    assert.equal(
      (await store.read(stream)).map(({ type, revision }) => [type, revision]),
      [
        ['Foreign', 2],
        ['Tested', 3],
      ],
    );
    assert.is(await store.end(), (await store.read(stream)).at(-1)!.position);
  }),
);

feeds('a log that holds nothing but its id is empty', () =>
  onDouble(async ({ store }) => {
    assert.is(await store.end(), undefined);
    assert.equal(await batchesOf(store.readAll(undefined)), []);
    const [first] = await Promise.all([
      readUntil(store.follow(undefined), (all) => all.length === 1),
      sleep(50).then(async () => store.append('a', [event()], 'none')),
    ]);
    assert.is(first.length, 1);
  }),
);

feeds('a follower that the server dropped goes on', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    const following = readUntil(store.follow(undefined, { streams: [stream] }), (all) => all.length === 60, 20_000);
    for (let n = 0; n < 60; n++) {
      await store.append(stream, [event()], n === 0 ? 'none' : n - 1);
      if (n % 10 === 5) double.dropSubscriptions();
    }
    assert.equal(
      (await following).map(({ revision }) => revision),
      Array.from({ length: 60 }, (_, n) => n),
    );
    // Dropped six times, and not waiting for a silent server.
  }, LONG_MS),
);

feeds('a subscription keeps no more ready than is soon asked for, and goes on once it is', async () => {
  const records = Array.from({ length: 500 }, (_, n) => ({
    id: crypto.randomUUID(),
    type: 'Tested',
    contentType: 'application/json',
    data: Buffer.from('{}'),
    metadata: Buffer.alloc(0),
    stream: 'a',
    revision: n,
    commit: n,
    created: 0,
  }));
  let sent = 0;
  const call = Object.assign(
    new Readable({
      objectMode: true,
      highWaterMark: 1,
      read() {
        this.push(sent === records.length ? null : eventResponse(records[sent++]!));
      },
    }),
    { cancel: () => undefined },
  );
  const connection = { call: async () => ({ call, silent: () => undefined }) } as unknown as Connection;
  const subscription = await subscribed(connection, subscribe(undefined, ALL_OURS), () => true, 40);
  const seen: number[] = [];
  while (seen.length < records.length) {
    await sleep(1);
    const { events: some } = (await subscription.take(40, LONG_MS))!;
    seen.push(...some.map(({ revision }) => revision));
    assert.ok(sent - seen.length <= 100, `${sent - seen.length} are ready`);
  }
  assert.equal(
    seen,
    records.map(({ revision }) => revision),
  );
  subscription.end();
});

feeds('a follower slower than the appends is dropped and goes on', () =>
  onDouble(async ({ store }) => {
    const stream = newStream();
    const text = 'x'.repeat(20_000);
    const seen: RecordedEvent[] = [];
    const following = (async () => {
      for await (const batch of store.follow(undefined, { streams: [stream] }, { batchSize: 10 })) {
        seen.push(...batch.events);
        if (seen.length === 1_500) return;
        await sleep(5);
      }
    })();
    for (let n = 0; n < 15; n++)
      await store.append(
        stream,
        Array.from({ length: 45 }, () => event('Large', { text })).concat(events(55)),
        n === 0 ? 'none' : n * 100 - 1,
      );
    await within(60_000, following);
    assert.equal(
      seen.map(({ revision }) => revision),
      Array.from({ length: 1_500 }, (_, n) => n),
    );
  }),
);

feeds('a follower that hears nothing of a log that grows subscribes again', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    await store.append(stream, [event()], 'none');
    let caughtUp = false;
    const following = readUntil(store.follow(undefined, { streams: [stream] }), (all, batch) => {
      caughtUp ||= batch.caughtUp;
      return all.length === 3;
    });
    await until(() => caughtUp && double.running() === 1);
    double.switches.deaf = true;
    await store.append(stream, events(1), 0);
    await sleep(TIMEOUT_MS * 3);
    double.switches.deaf = false;
    await store.append(stream, events(1), 1);
    assert.equal(
      (await following).map(({ revision }) => revision),
      [0, 1, 2],
    );
  }),
);

feeds('far more than a hundred followers and reads at once wait for none of each other', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    const ending = new AbortController();
    const followers = Array.from({ length: 120 }, async () =>
      readUntil(store.follow(undefined, { streams: [stream] }, { signal: ending.signal }), (all) => all.length === 2),
    );
    await until(() => double.running() === 1);
    await store.append(stream, events(1), 'none');
    const reads = await within(10_000, Promise.all(Array.from({ length: 300 }, async () => store.read(stream))));
    assert.ok(reads.every((read) => read.length === 1));
    assert.ok(
      double.most() <= 52,
      `${double.most()} calls: no more than 50 reads at once, an append, and one follower's`,
    );
    await store.append(stream, events(1), 0);
    for (const seen of await Promise.all(followers)) assert.is(seen.length, 2);
    assert.is(double.way.connections, 2, 'one for reads and appends, and one that all followers share');
    await until(() => double.running() === 0);
  }, LONG_MS),
);

feeds("shares one subscription between followers at the log's end, until the last one ends", () =>
  onDouble(async ({ store, double }) => {
    const streams = [newStream(), newStream()];
    const ending = streams.map(() => new AbortController());
    const seen: string[][] = [[], []];
    const following = streams.map(async (stream, n) => {
      const options = { batchSize: n + 1, signal: ending[n]!.signal };
      for await (const batch of store.follow(undefined, { streams: [stream] }, options))
        seen[n]!.push(...batch.events.map(({ stream: from, revision }) => `${from}/${revision}`));
    });
    await until(() => double.running() === 1);
    for (let revision = 0; revision < 3; revision++)
      for (const stream of streams) await store.append(stream, [event()], revision === 0 ? 'none' : revision - 1);
    const all = streams.map((stream) => [0, 1, 2].map((revision) => `${stream}/${revision}`));
    await until(() => seen.every((some) => some.length >= 3));
    assert.equal(seen, all);
    assert.is(double.running(), 1);
    ending[0]!.abort();
    await within(10_000, following[0]!);
    await store.append(streams[1]!, [event()], 2);
    await until(() => seen[1]!.length === 4);
    assert.is(double.running(), 1);
    ending[1]!.abort();
    await within(10_000, following[1]!);
    await until(() => double.running() === 0);
  }),
);

feeds("a follower from beyond the log's end, which was put back, leaves others the live end", () =>
  onDouble(async ({ store, double }) => {
    const { position } = await store.append(newStream(), events(2), 'none');
    const beyond = position.replace(/^0/, '1');
    const ending = new AbortController();
    const lost = batchesOf(store.follow(beyond, {}, { signal: ending.signal }));
    await until(() => double.running() === 1);
    const stream = newStream();
    const seen: [number, boolean][] = [];
    const following = readUntil(store.follow(position, { streams: [stream] }), (all, { caughtUp }) => {
      seen.push([all.length, caughtUp]);
      return all.length === 1;
    });
    await until(() => seen.length === 1);
    assert.equal(seen, [[0, true]], 'caught up, though nothing came since');
    assert.is(double.running(), 1);
    const batch = [event()];
    await store.append(stream, batch, 'none');
    assert.equal(idsOf(await following), idsOf(batch));
    ending.abort();
    assert.equal(
      (await within(10_000, lost)).map(({ events: some, caughtUp }) => [some.length, caughtUp]),
      [[0, true]],
    );
    await until(() => double.running() === 0);
  }),
);

feeds('what is left early runs on nowhere', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    await store.append(stream, events(300), 'none');
    for (let n = 0; n < 120; n++) {
      for await (const { events: some } of n % 2 === 0
        ? store.readAll(undefined, {}, { batchSize: 1 })
        : store.follow(undefined, {}, { batchSize: 1 }))
        if (some.length > 0) break;
    }
    await until(() => double.running() === 0);
    const ending = new AbortController();
    const ended = batchesOf(store.follow(undefined, {}, { signal: ending.signal }));
    await until(() => double.running() === 1);
    ending.abort();
    await within(10_000, ended);
    await until(() => double.running() === 0);
  }),
);

/** The next connection of the store, which is that of feeds, leads to a deposed leader whose log ends here. */
async function onDeposed(check: (opened: Opened & { deposed: EventStoreDouble }) => Promise<void>): Promise<void> {
  await onDouble(async (opened) => {
    const { store, double } = opened;
    const deposed = await startEventStoreDouble({ clusterOf: double });
    try {
      const { position } = await store.append(newStream(), events(3), 'none');
      deposed.switches.deposedAt = Number(position);
      double.way.turn(deposed.port);
      await check({ ...opened, deposed });
    } finally {
      await store.close();
      await deposed.close();
    }
  });
}

feeds('a follower of a deposed leader stands nowhere beyond what that one has', () =>
  onDeposed(async ({ store, double, deposed }) => {
    const type = newStream('Matched');
    const before = await store.end();
    const batch = [event(type), event(type)];
    const { position: end } = await store.append(newStream(), batch, 'none');
    const [seen] = await Promise.all([
      readUntil(store.follow(before, { types: [type] }), (all, { position, caughtUp }) => {
        if (all.length < batch.length)
          assert.ok(!caughtUp && position < end, `${position}, of a log that ends at ${end}`);
        return all.length === batch.length;
      }),
      until(() => deposed.most() > 0)
        .then(async () => sleep(TIMEOUT_MS / 2))
        .then(() => double.way.turn(double.inner)),
    ]);
    assert.equal(idsOf(seen), idsOf(batch));
  }),
);

feeds('a read that only a deposed leader answers fails instead of ending early', () =>
  onDeposed(async ({ store }) => {
    const read = await batchesOf(store.readAll(undefined));
    assert.is(read.flatMap(({ events: some }) => some).length, 3, 'what the deposed leader has too');
    const { position } = await store.append(newStream(), events(2), 'none');
    for (const filter of [{}, { types: ['Matched'] }])
      assert.instance(await failureOf(eventsOf(store.readAll(undefined, filter))), UnavailableError);
    assert.is(await store.end(), position);
  }),
);

feeds('a follower at the end of a deposed leader goes on at the one that leads', () =>
  onDeposed(async ({ store, double, deposed }) => {
    const stream = newStream();
    let caughtUp = false;
    const following = readUntil(store.follow(await store.end(), { streams: [stream] }), (all, batch) => {
      caughtUp ||= batch.caughtUp;
      return all.length === 2;
    });
    await until(() => caughtUp && deposed.running() === 1);
    double.way.turn(double.inner);
    const batch = events(2);
    await store.append(stream, batch, 'none');
    assert.equal(idsOf(await following), idsOf(batch));
  }),
);

feeds('never takes a checkpoint at an impossible place, or beyond events still to come', () =>
  onDouble(async ({ store, double }) => {
    const type = newStream('Matched');
    await store.append(newStream(), events(3), 'none');
    for (const [round, commit] of [
      ODD_CHECKPOINT,
      '9223372036854775808',
      '9223372036854775807',
      '99999999',
      '0',
    ].entries()) {
      double.switches.checkpoints = [commit, commit];
      const end = await store.end();
      const [first, ...more] = await batchesOf(store.readAll(undefined, { types: [`${type} ${round}`] }));
      assert.equal([first?.position, first?.caughtUp, more], [end, true, []], commit);
      const following = readUntil(store.follow(undefined, { types: [`${type} ${round}`] }), (all, { position }) => {
        assert.ok(position >= end!, commit);
        return all.length === 1;
      });
      await until(() => double.running() === 1);
      await store.append(newStream(), [event()], 'none');
      const { position } = await store.append(newStream(), [event(`${type} ${round}`)], 'none');
      assert.equal(
        (await following).map((one) => one.position),
        [position],
        commit,
      );
    }
  }),
);

feeds('what the server says stands where no event can stand is asked for again, not taken', () => {
  for (const commit of ['18446744073709551615', '9223372036854775808', '-1'])
    assert.throws(
      () => positionOf(commit),
      (error: unknown) => error instanceof UnavailableError,
      commit,
    );
  assert.is(positionOf('9223372036854775807'), '9223372036854775807');
  assert.is(positionOf('7'), '0000000000000000007');
});

feeds('a position of another engine is refused', () =>
  onDouble(async ({ store }) => {
    for (const odd of ['0000000000000001', ODD_CHECKPOINT, '9223372036854775808'])
      assert.instance(await failureOf(batchesOf(store.readAll(odd))), RangeError);
  }),
);

feeds('ends a read with the error of an event that is marked as JSON, and is not', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    await double.log.append(
      'broken',
      [
        {
          id: crypto.randomUUID(),
          type: 'Broken',
          contentType: 'application/json',
          data: Buffer.from('{'),
          metadata: Buffer.alloc(0),
        },
      ],
      'any',
    );
    assert.instance(await failureOf(store.read('broken')), SyntaxError);
    for (const read of [store.readAll(undefined), store.follow(undefined)])
      assert.instance(await failureOf(eventsOf(read)), SyntaxError);
    assert.is((await eventsOf(store.readAll(undefined, { streams: ['a'] }))).length, 1);
  }),
);

feeds('a follower that falls behind, and catches up, says so', () =>
  onDouble(async ({ store, double }) => {
    const caughtUp: boolean[] = [];
    const stream = newStream();
    await store.append(stream, [event()], 'none');
    const following = readUntil(store.follow(undefined), (all, batch) => {
      caughtUp.push(batch.caughtUp);
      return all.length === 3;
    });
    await until(() => caughtUp.length === 1 && double.running() === 1);
    await sleep(20);
    double.fallBehind();
    await sleep(10);
    await store.append(stream, [event()], 0);
    await sleep(100);
    await store.append(stream, [event()], 1);
    await following;
    assert.is(caughtUp[0], true);
    assert.is(caughtUp.at(-1), true);
  }),
);

feeds('trouble is told once, and its end once', async () => {
  const double = await startEventStoreDouble();
  const told: string[] = [];
  const logger = {
    info: (text: string) => void told.push(`info ${text}`),
    warn: (_: object, text: string) => void told.push(`warn ${text}`),
  };
  const store = await openEventStoreDb({
    url: double.url,
    timeoutMs: TIMEOUT_MS,
    logger: logger as NonNullable<Parameters<typeof openEventStoreDb>[0]['logger']>,
  });
  const ending = new AbortController();
  let seen = 0;
  const following = (async () => {
    for await (const batch of store.follow(undefined, {}, { signal: ending.signal })) seen += batch.events.length;
  })();
  await store.append('a', [event()], 'none');
  await until(() => seen === 1);
  await double.way.down();
  await sleep(500);
  await double.way.up();
  await store.append('a', [event()], 0);
  await until(() => seen === 2);
  ending.abort();
  await following;
  assert.is(told.length, 2);
  assert.match(told[0]!, /^warn lost/);
  assert.match(told[1]!, /^info .*again/);
  await store.close();
  await double.close();
});

const connections = suite('EventStoreDB: connections');

connections('a connection that is dead without a word is given up for a new one', () =>
  onDouble(async ({ store, double }) => {
    const stream = newStream();
    await store.append(stream, events(1), 'none');
    let seen = 0;
    const following = readUntil(store.follow(undefined, { streams: [stream] }), (all) => {
      seen = all.length;
      return seen === 3;
    });
    await until(() => seen === 1);
    double.way.hang();
    await store.append(stream, events(1), 0);
    double.way.hang();
    assert.is((await store.read(stream)).length, 2);
    await store.append(stream, events(1), 1);
    await following;
  }),
);

connections('finds the leader of a cluster by gossip, and reports when no node answers', () =>
  onDouble(async ({ double }) => {
    const dead = await startEventStoreDouble();
    await dead.close();
    const store = await openEventStoreDb({
      url: `esdb://127.0.0.1:${dead.port},127.0.0.1:${double.port}?tls=false&maxDiscoverAttempts=2`,
      timeoutMs: TIMEOUT_MS,
    });
    try {
      await store.append('a', [event()], 'none');
      const following = readUntil(store.follow(undefined), (all) => all.length === 2, 20_000);
      await double.way.down();
      const failures = await Promise.all([failureOf(store.append('a', [event()], 0)), failureOf(store.read('a'))]);
      for (const failure of failures) assert.instance(failure, UnavailableError);
      assert.is((failures[1] as UnavailableError).outcomeUnknown, false);
      await double.way.up();
      await store.append('b', [event()], 'none');
      await following;
    } finally {
      await store.close();
    }
  }),
);

/** Asks the node who leads. */
const openDiscovering = async ({ port }: EventStoreDouble): Promise<EventStore> =>
  openEventStoreDb({ url: `esdb+discover://127.0.0.1:${port}?tls=false`, timeoutMs: TIMEOUT_MS });

connections('closes at once, and ends what is followed, while it looks for a node that says nothing', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    const discovering = await openDiscovering(double);
    double.way.freeze();
    const following = Array.from({ length: 2 }, async () => batchesOf(discovering.follow(undefined)));
    // A connection that nothing comes over is given up, and the next one looks for its node.
    for (let n = 0; n < 2; n++) assert.instance(await failureOf(discovering.ping()), UnavailableError);
    const [reading, appending] = [failureOf(discovering.read('a')), failureOf(discovering.append('a', [event()], 0))];
    await sleep(TIMEOUT_MS / 4);
    await within(20_000, discovering.close());
    await within(20_000, Promise.all([...following, reading, appending]));
    // Whoever looked for it has left.
    double.way.thaw();
    await sleep(TIMEOUT_MS);
    await store.close();
    await until(() => double.way.connections === 0);
    assert.is(double.running(), 0);
  }),
);

connections('a follower that looks for a node that says nothing can be ended, and says that it hears nothing', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    const discovering = await openDiscovering(double);
    try {
      const silent = await startEventStoreDouble({ clusterOf: double });
      silent.way.freeze();
      double.way.turn(silent.port);
      const ending = new AbortController();
      let troubles = 0;
      const following = batchesOf(
        discovering.follow(
          undefined,
          {},
          { signal: ending.signal, onTrouble: (error) => void (troubles += error === undefined ? 0 : 1) },
        ),
      );
      await until(() => troubles > 1);
      ending.abort();
      await following;
      await silent.close();
    } finally {
      await discovering.close();
    }
  }),
);

connections('a search for another leader that nobody waits for may fail', () =>
  onDouble(async ({ double }) => {
    const store = await openEventStoreDb({
      url: `esdb://127.0.0.1:${double.port},127.0.0.1:${double.port}?tls=false&maxDiscoverAttempts=2`,
      timeoutMs: TIMEOUT_MS,
    });
    try {
      await store.append('a', [event()], 'none');
      double.switches.refuse = { code: 14, details: 'Server Is Not Ready' };
      const reading = failureOf(store.read('a'));
      await sleep(8);
      // The repeated read looks for a leader. Meanwhile the call of the appends ends, and their outcomes are looked up.
      double.way.freeze();
      await sleep(60);
      await double.way.down();
      assert.instance(await reading, UnavailableError);
      await sleep(500);
    } finally {
      await store.close();
    }
  }),
);

connections('tries reads again, and follows on, when a stopping server ends calls with its own error', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    const following = readUntil(store.follow(undefined), (all) => all.length === 2, 20_000);
    await until(() => double.running() === 1);
    double.switches.refuse = { code: 13, details: 'Received RST_STREAM with code 2' };
    double.way.cut();
    const [read] = await Promise.all([
      store.read('a'),
      sleep(300).then(() => {
        double.switches.refuse = undefined;
      }),
    ]);
    assert.is(read.length, 1);
    await store.append('a', [event()], 0);
    assert.is((await following).length, 2);
    double.switches.refuse = { code: 13, details: 'Received RST_STREAM with code 2' };
    assert.instance(await failureOf(store.read('a')), UnavailableError);
  }),
);

connections('however many reads wait for a silent server, each fails in time, and one that is slow is waited for', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    double.way.freeze();
    const reads = Array.from({ length: 2_000 }, async () => failureOf(store.read('a')));
    for (const failure of await within(60_000, Promise.all(reads))) assert.instance(failure, UnavailableError);
    double.way.thaw();
    // A machine with much to do answers later than it is told to: a server that takes so long is not silent yet.
    const patientMs = TIMEOUT_MS * 6;
    const patient = await openEventStoreDb({ url: double.url, timeoutMs: patientMs });
    try {
      double.switches.readMs = patientMs / 8;
      // The last of them wait for longer than a silent server is waited for.
      const slow = await Promise.all(Array.from({ length: 500 }, async () => patient.read('a')));
      assert.ok(slow.every(({ length }) => length === 1));
    } finally {
      await patient.close();
    }
  }),
);

connections('an append that was never sent is known not to be stored', () =>
  onDouble(async ({ store, double }) => {
    await store.append('a', [event()], 'none');
    await double.way.down();
    await failureOf(store.ping());
    const error = (await failureOf(store.append('b', [event()], 'none'))) as UnavailableError;
    assert.equal([error.name, error.outcomeUnknown], ['UnavailableError', false]);
    await double.way.up();
  }),
);

connections("the client's own calls are not disturbed by ours", () =>
  onDouble(async ({ store, double }) => {
    const client = EventStoreDBClient.connectionString(double.url);
    await client.appendToStream('theirs', [
      { id: crypto.randomUUID(), type: 'Theirs', contentType: 'application/json', data: { a: 1 }, metadata: { b: 2 } },
    ]);
    assert.equal(
      (await store.read('theirs')).map(({ data, metadata }) => ({ data, metadata })),
      [{ data: { a: 1 }, metadata: { b: 2 } }],
    );
    await client.dispose();
  }),
);

const opening = suite('EventStoreDB: opening');

opening('an address that can not be read is told without its password', async () => {
  for (const url of ['http://h', 'esdb://', 'esdb://h:x', 'esdb://user:geheim@h:x?tls=false', 'nonsense']) {
    const error = (await failureOf(openEventStoreDb({ url }))) as Error;
    assert.is(error.name, 'EventStoreDbError', url);
    assert.match(error.message, /esdb:\/\/HOST/);
    assert.not.match(error.message, /geheim/);
  }
});

opening('a server that does not answer, refuses, or is too old', async () => {
  const double = await startEventStoreDouble({ version: '22.10.1' });
  try {
    const tooOld = (await failureOf(openEventStoreDb({ url: double.url, timeoutMs: TIMEOUT_MS }))) as Error;
    assert.equal([tooOld.name, /22\.10\.1.*23\.10/.test(tooOld.message)], ['EventStoreDbError', true]);
    double.way.freeze();
    assert.instance(
      await within(20_000, failureOf(openEventStoreDb({ url: double.url, timeoutMs: TIMEOUT_MS }))),
      UnavailableError,
    );
    double.way.thaw();
    await double.way.down();
    assert.instance(
      await within(20_000, failureOf(openEventStoreDb({ url: double.url, timeoutMs: TIMEOUT_MS }))),
      UnavailableError,
    );
  } finally {
    await double.close();
  }
  await onDouble(async ({ double: other }) => {
    other.switches.refuse = { code: 16, details: 'Unauthenticated' };
    assert.is(
      ((await failureOf(openEventStoreDb({ url: other.url, timeoutMs: TIMEOUT_MS }))) as Error).name,
      'EventStoreDbError',
    );
  });
});

opening('fails in time where no node says who leads', async () => {
  const double = await startEventStoreDouble();
  double.way.freeze();
  try {
    for (const hosts of [
      `+discover://127.0.0.1:${double.port}`,
      `://127.0.0.1:${double.port},127.0.0.1:${double.port}`,
    ]) {
      const opened = openEventStoreDb({ url: `esdb${hosts}?tls=false`, timeoutMs: TIMEOUT_MS });
      assert.instance(await within(20_000, failureOf(opened)), UnavailableError);
    }
  } finally {
    await double.close();
  }
});

opening('several that begin the log at once give it one id', async () => {
  const double = await startEventStoreDouble();
  const stores = await Promise.all(Array.from({ length: 5 }, async () => openEventStoreDb({ url: double.url })));
  assert.is(new Set(stores.map(({ logId }) => logId)).size, 1);
  for (const store of stores) await store.close();
  await double.close();
});

for (const one of [appends, deleted, feeds, connections, opening]) one.run();
