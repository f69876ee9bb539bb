import * as assert from 'uvu/assert';
import type { ExpectedRevision, NewEvent } from '../../src/ports/eventStore.js';
import { asOf } from '../../src/ops/ranges/timeBounds.js';
import { ConflictError, EventTooLargeError, MAX_APPEND_BYTES } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { EventStoreFixture, Promised } from '../support/engines/eventStoreEvents.js';
import {
  batchesOf,
  event,
  events,
  eventsOf,
  failureOf,
  idsOf,
  newStream,
  within,
} from '../support/engines/eventStoreEvents.js';
import { FEED_PROMISES } from './eventStoreFeeds.js';
import { FOLLOWER_PROMISES } from './followers.js';
import { checkPromises } from './promises.js';

/** The port's guarantees, as tests of one adapter. `deviations`: see `checkPromises`. */
export function eventStoreContract(
  name: string,
  open: () => Promise<EventStoreFixture>,
  deviations: Readonly<Record<string, string>> = {},
): void {
  checkPromises(`EventStore: ${name}`, PROMISES, open, deviations);
}

async function conflictOf(
  append: Promise<unknown>,
): Promise<{ stream: string; expected: ExpectedRevision; actual: number }> {
  const error = await failureOf(append);
  assert.instance(error, ConflictError);
  const { stream, expected, actual } = error as ConflictError;
  return { stream, expected, actual };
}

const PROMISES: Readonly<Record<string, Promised>> = {
  ...FEED_PROMISES,
  ...FOLLOWER_PROMISES,

  async 'an append to a new stream gets revisions from 0'(store) {
    const stream = newStream();
    const first = await store.append(stream, events(3), 'none');
    assert.is(first.revision, 2);
    const second = await store.append(stream, [event()], 2);
    assert.is(second.revision, 3);
    assert.ok(second.position > first.position);
    const third = await store.append(stream, events(2), 'any');
    assert.is(third.revision, 5);
    assert.equal(
      (await store.read(stream)).map(({ revision }) => revision),
      [0, 1, 2, 3, 4, 5],
    );
  },

  async 'any expectation holds for a new stream'(store) {
    assert.is((await store.append(newStream(), [event()], 'any')).revision, 0);
  },

  async 'a log without a round trip answers at once with what was appended'(store) {
    const { local } = store;
    assert.is(local !== undefined, store.engine === 'embedded', 'only what is on this machine');
    if (local === undefined) return;
    const [stream, other] = [newStream(), newStream()];
    assert.is(local.lastOf(stream), undefined);
    const { position } = await store.append(stream, events(3), 'none');
    assert.equal([local.end(), local.lastOf(stream)], [position, position]);
    const later = await store.append(other, [event()], 'none');
    assert.equal([local.end(), local.lastOf(stream), local.lastOf(other)], [later.position, position, later.position]);
    assert.is(local.end(), await store.end());
  },

  async 'a log with a round trip answers last event and end with what was just appended'(store) {
    assert.is(store.lastOf === undefined, store.local !== undefined, 'what is not on this machine');
    if (store.lastOf === undefined) return;
    const [stream, other] = [newStream(), newStream()];
    assert.is(await store.lastOf(stream), undefined);
    for (let n = 0; n < 20; n++) {
      const { position } = await store.append(stream, events(2), n === 0 ? 'none' : n * 2 - 1);
      assert.is(await store.lastOf(stream), position);
      assert.ok(((await store.end()) ?? '') >= position);
    }
    const before = await store.lastOf(stream);
    const later = await store.append(other, [event()], 'none');
    assert.equal([await store.lastOf(stream), await store.lastOf(other)], [before, later.position]);
  },

  async 'the last events begin after the event before them'(store) {
    const stream = newStream();
    await store.append(stream, events(3), 'none');
    await store.append(stream, events(1), 2);
    await store.append(stream, events(2), 3);
    const before = await eventsOf(store.readAll(undefined));
    for (const count of [1, 2, 5]) {
      const after = await store.startOfLast(count);
      assert.is(after, before.at(-1 - count)?.position);
      assert.equal(idsOf(await eventsOf(store.readAll(after))), idsOf(before.slice(-count)));
    }
    for (const count of [before.length, before.length + 1]) assert.is(await store.startOfLast(count), undefined);
    assert.is(await store.startOfLast(before.length - 1), before[0]?.position);
  },

  async 'an event is read as it was appended'(store) {
    const stream = newStream();
    const appended: NewEvent = {
      ...event('Rich', { text: 'ä€😀\u0000"\\', number: -1.5e-7, list: [null, true, { deep: { er: [] } }] }),
      metadata: {
        commandId: 'c',
        bodyHash: 'h',
        causationId: 'e',
        correlationId: 'r',
        requestId: 'q',
        by: { user: 'u', client: 'k', roles: ['a', 'b'] },
        schema: 2,
        simulated: true,
      },
    };
    const { position } = await store.append(stream, [appended], 'none');
    const [read] = await store.read(stream);
    assert.equal({ ...read }, { ...appended, stream, revision: 0, position });
    assert.equal(JSON.parse(JSON.stringify(read)), { ...appended, stream, revision: 0, position });
    const [fromLog] = await eventsOf(store.readAll(undefined, { streams: [stream] }));
    assert.equal({ ...fromLog }, { ...read });
  },

  async 'a wrong expectation is a conflict with the actual revision, and writes nothing'(store) {
    const stream = newStream();
    assert.equal(await conflictOf(store.append(stream, [event()], 0)), { stream, expected: 0, actual: -1 });
    const first = events(3);
    await store.append(stream, first, 'none');
    assert.equal(await conflictOf(store.append(stream, [event()], 'none')), { stream, expected: 'none', actual: 2 });
    assert.equal(await conflictOf(store.append(stream, events(2), 1)), { stream, expected: 1, actual: 2 });
    assert.equal(await conflictOf(store.append(stream, events(5), 7)), { stream, expected: 7, actual: 2 });
    assert.equal(idsOf(await store.read(stream)), idsOf(first));
  },

  async 'a repeated append is answered as the first time and not written again'(store) {
    const stream = newStream();
    const expectations: ExpectedRevision[] = ['none', 1, 'any'];
    const appends = [];
    for (const expected of expectations) {
      const batch = events(2);
      appends.push({ batch, expected, appended: await store.append(stream, batch, expected) });
    }
    const before = idsOf(await store.read(stream));
    for (const { batch, expected, appended } of appends) {
      assert.equal(await store.append(stream, batch, expected), appended, `expected ${expected}`);
    }
    assert.equal(idsOf(await store.read(stream)), before);
    assert.is(before.length, 6);
  },

  async 'an append that shares only some ids, or another expectation, is no repeat'(store) {
    const stream = newStream();
    const [a, b] = [event(), event()];
    await store.append(stream, [a, b], 'none');
    assert.is((await conflictOf(store.append(stream, [a, event()], 'none'))).actual, 1);
    assert.is((await conflictOf(store.append(stream, [a, b, event()], 'none'))).actual, 1);
    assert.is((await conflictOf(store.append(stream, [b], 'none'))).actual, 1);
    assert.is((await conflictOf(store.append(stream, [a, b], 0))).actual, 1);
    assert.equal(idsOf(await store.read(stream)), idsOf([a, b]));
  },

  async 'the same append twice at once is written once'(store) {
    const stream = newStream();
    const batch = events(3);
    const [one, two] = await Promise.all([store.append(stream, batch, 'none'), store.append(stream, batch, 'none')]);
    assert.equal(one, two);
    assert.equal(idsOf(await store.read(stream)), idsOf(batch));
  },

  async 'of a hundred appends at once with one expectation, one wins'(store) {
    const stream = newStream();
    await store.append(stream, [event()], 'none');
    const attempts = Array.from({ length: 100 }, () => events(2));
    const outcomes = await Promise.allSettled(attempts.map((batch) => store.append(stream, batch, 0)));
    const winners = attempts.filter((_, index) => outcomes[index]!.status === 'fulfilled');
    assert.is(winners.length, 1);
    for (const outcome of outcomes) if (outcome.status === 'rejected') assert.instance(outcome.reason, ConflictError);
    assert.equal(
      idsOf(await store.read(stream, { from: 1 })),
      idsOf(winners[0]!),
      'all of the winner and nothing of the others',
    );
  },

  async 'appends in order are stored in that order in all streams, and repeats change nothing'(store) {
    // An engine may lack it.
    if (store.appendInOrder === undefined) return;
    const start = await store.end();
    const base = newStream();
    const heads = new Map<string, number>();
    const ordered = Array.from({ length: 700 }, (_, n) => {
      const stream = `${base}-${(n * 37) % 100}`;
      const batch = events((n % 2) + 1);
      const head = heads.get(stream);
      heads.set(stream, (head ?? -1) + batch.length);
      return { stream, events: batch, expected: head ?? ('none' as const) };
    });
    await store.appendInOrder(ordered);
    await store.appendInOrder(ordered);
    assert.equal(
      idsOf(await eventsOf(store.readAll(start, { streams: [base] }))),
      ordered.flatMap((append) => idsOf(append.events)),
    );
    assert.is(
      (await conflictOf(store.appendInOrder([{ stream: `${base}-0`, events: [event()], expected: 'none' }]))).expected,
      'none',
    );
    assert.instance(
      await failureOf(
        store.appendInOrder([
          { stream: newStream(), events: [event('Large', { text: 'x'.repeat(MAX_APPEND_BYTES) })], expected: 'none' },
        ]),
      ),
      EventTooLargeError,
    );
  },

  async 'a conflict disturbs no other append'(store) {
    const taken = newStream();
    await store.append(taken, [event()], 'none');
    const streams = Array.from({ length: 50 }, () => newStream());
    const outcomes = await Promise.allSettled(
      streams.flatMap((stream) => [store.append(stream, [event()], 'none'), store.append(taken, [event()], 'none')]),
    );
    assert.equal(
      outcomes.map(({ status }) => status),
      streams.flatMap(() => ['fulfilled', 'rejected']),
    );
    for (const stream of streams) assert.is((await store.read(stream)).length, 1);
  },

  async 'a stream is read from a revision, up to a limit'(store) {
    const stream = newStream();
    await store.append(stream, events(10), 'none');
    const revisions = async (options: { from?: number; limit?: number }): Promise<number[]> =>
      (await store.read(stream, options)).map(({ revision }) => revision);
    assert.equal(await revisions({ from: 7 }), [7, 8, 9]);
    assert.equal(await revisions({ limit: 2 }), [0, 1]);
    assert.equal(await revisions({ from: 3, limit: 2 }), [3, 4]);
    assert.equal(await revisions({ from: 10 }), []);
    assert.equal(await revisions({ limit: 0 }), []);
    assert.equal(await store.read(newStream()), []);
  },

  async 'names of streams and types may be odd'(store) {
    const marks = [
      ' ',
      "'",
      '"',
      '%',
      '_',
      '\\',
      '/',
      '?#',
      'é',
      'e\u0301',
      '漢字',
      '😀',
      '\uFFFD',
      'A',
      'a',
      '🏳️‍🌈'.repeat(8),
    ];
    const base = newStream();
    const names = marks.map((mark) => `${base}-${mark}`);
    for (const name of names) await store.append(name, [event(`Type ${name}`)], 'none');
    for (const name of names)
      assert.equal(
        (await store.read(name)).map(({ stream, type }) => [stream, type]),
        [[name, `Type ${name}`]],
      );
    for (const name of names) {
      assert.equal(
        (await eventsOf(store.readAll(undefined, { streams: [name] }))).map(({ stream }) => stream),
        names.filter((other) => other.startsWith(name)),
      );
    }
  },

  async 'an event of 900 kB is stored; a thousand events in one append too'(store) {
    const stream = newStream();
    const large = event('Large', { text: 'é'.repeat(450_000) });
    await store.append(stream, [large], 'none');
    const many = events(1_000);
    assert.is((await store.append(stream, many, 0)).revision, 1_000);
    const read = await store.read(stream);
    assert.equal(read[0]!.data, large.data);
    assert.equal(idsOf(read), idsOf([large, ...many]));
    assert.equal(idsOf(await eventsOf(store.readAll(undefined, { streams: [stream] }))), idsOf([large, ...many]));
  },

  async 'an append of more than 1,000,000 bytes is refused, one of just so many is not'(store) {
    const stream = newStream();
    const sized = (bytes: number, mark: string): NewEvent[] => {
      const [small, filler] = [event('Small'), event('Filler', { text: '' })];
      const rest =
        bytes -
        Buffer.byteLength(
          [small, filler].map(({ data, metadata }) => JSON.stringify(data) + JSON.stringify(metadata)).join(''),
        );
      const width = Buffer.byteLength(mark);
      return [small, { ...filler, data: { text: mark.repeat(Math.floor(rest / width)) + 'x'.repeat(rest % width) } }];
    };
    assert.instance(
      await failureOf(store.append(stream, sized(MAX_APPEND_BYTES + 1, 'x'), 'none')),
      EventTooLargeError,
    );
    assert.instance(
      await failureOf(store.append(stream, sized(MAX_APPEND_BYTES + 1, '漢'), 'none')),
      EventTooLargeError,
    );
    assert.equal(await store.read(stream), []);
    await store.append(stream, sized(MAX_APPEND_BYTES, '漢'), 'none');
    assert.is((await store.read(stream)).length, 2);
  },

  async 'positions are of one width, and their byte order is log order'(store) {
    const appended = [];
    for (let n = 0; n < 12; n++) appended.push((await store.append(newStream(), [event()], 'none')).position);
    assert.is(new Set(appended.map((position) => Buffer.byteLength(position))).size, 1);
    for (const position of appended) assert.ok(store.isPosition(position), position);
    const tooGreat = '9'.repeat(appended[0]!.length);
    for (const odd of [
      '',
      'x',
      '42',
      '18446744073709551615',
      '-1',
      tooGreat,
      `${appended[0]}0`,
      appended[0]!.slice(1),
      `${appended[0]!.slice(1)}a`,
    ])
      assert.not.ok(store.isPosition(odd), odd);
    assert.equal(
      appended.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
      appended,
    );
    assert.is(new Set(appended).size, 12);
    const end = (await store.end())!;
    assert.ok(end >= appended.at(-1)!);
    for (const position of [...appended, end]) assert.ok(await store.reaches(position), position);
    const far = String(Number(end) + 1_000_000).padStart(end.length, '0');
    assert.ok(store.isPosition(far));
    for (const odd of [far, '', 'x', '18446744073709551615', tooGreat]) assert.not.ok(await store.reaches(odd), odd);
  },

  async 'a time is found as the place where the log stood then'(store) {
    const dated = (second: number, prefix = 'test'): Promise<{ position: string }> => {
      const at = new Date(Date.UTC(2150, 0, 1, 0, 0, second)).toISOString();
      return store.append(newStream(prefix), [{ ...event(), at }], 'none');
    };
    const time = (second: number, ms = 0): string => new Date(Date.UTC(2150, 0, 1, 0, 0, second, ms)).toISOString();
    const start = await store.end();
    const places = new Map<number, string>();
    for (let second = 1; second <= 40; second++)
      places.set(second, (await dated(second, second % 7 === 0 ? 'transaction-00' : 'test')).position);
    const same = [(await dated(41)).position, (await dated(41)).position];
    for (const second of [1, 2, 6, 7, 8, 20, 39, 40]) {
      assert.is((await asOf(store, time(second)))?.position, places.get(second), String(second));
      assert.is((await asOf(store, time(second, 999)))?.position, places.get(second), `after ${second}`);
    }
    assert.is((await asOf(store, time(41)))?.position, same[1], 'of several of one time, the last');
    assert.is((await asOf(store, time(4_000)))?.position, same[1], 'after the last event');
    const before = (await asOf(store, time(0)))?.position;
    assert.ok(before === undefined ? start === undefined : before <= start!, 'before all of them');
    assert.is((await asOf(store, '1969-12-31T23:59:59.999Z'))?.position, undefined, 'before the log began');
  },

  async 'close finishes accepted appends, ends followers and refuses what comes later'(store, { reopen }) {
    const stream = newStream();
    const end = await store.end();
    const following = batchesOf(store.follow(end, { types: ['None such'] }));
    const open = store.readAll(undefined, {}, { batchSize: 1 })[Symbol.asyncIterator]();
    await store.append(stream, [event()], 'none');
    await open.next();
    let answered = 0;
    const accepted = Array.from({ length: 20 }, (_, n) =>
      store.append(`${stream}-${n}`, [event()], 'none').finally(() => (answered += 1)),
    );
    const closing = store.close().then(() => answered);
    const outcomes = await Promise.all(accepted);
    assert.is(await within(20_000, closing), 20, 'it has waited for them');
    await within(20_000, following);
    assert.is((await open.next()).done, true);
    assert.instance(await failureOf(store.append(stream, [event()], 'any')), UnavailableError);
    assert.instance(await failureOf(store.read(stream)), UnavailableError);
    assert.instance(await failureOf(store.end()), UnavailableError);
    assert.instance(await failureOf(store.ping()), UnavailableError);
    assert.instance(await failureOf((async () => batchesOf(store.readAll(undefined)))()), UnavailableError);
    await store.close();
    const again = await reopen();
    for (const [n, { position }] of outcomes.entries())
      assert.equal(
        (await again.read(`${stream}-${n}`)).map((one) => one.position),
        [position],
      );
  },

  async 'everything is there when the log is opened again'(store, { reopen }) {
    const stream = newStream();
    const batch = events(5);
    const { position } = await store.append(stream, batch, 'none');
    const before = await store.read(stream);
    await store.close();
    const again = await reopen();
    assert.is(again.logId, store.logId);
    assert.equal(
      (await again.read(stream)).map((one) => ({ ...one })),
      before.map((one) => ({ ...one })),
    );
    assert.ok((await again.end())! >= position);
    assert.equal(await again.append(stream, batch, 'none'), { revision: 4, position }, 'a repeat after reopening');
    assert.is((await again.append(stream, [event()], 4)).revision, 5);
  },

  async 'it answers a ping, and names its engine and log'(store) {
    await store.ping();
    assert.match(store.engine, /^[a-z]+$/);
    assert.match(store.logId, /^\S{8,}$/);
  },
};
