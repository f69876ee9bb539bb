import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { EventBatch, EventStore } from '../../../src/ports/eventStore.js';
import type { ReadStore, WriteBatch } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';
import { considerate, paced, type Pace } from '../../../src/runtime/coordination/pace.js';
import { reportServing, servingNow } from '../../../src/runtime/coordination/serving.js';
import { FULL_SPEED } from '../../support/faults/fullSpeed.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { silent } from '../../support/fixtures/projecting.js';
import { turnsDuring } from '../../support/assertions/turns.js';
import { until } from '../../support/assertions/until.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';

const test = suite('pace');
const timed = inVirtualTime(test);
const POLITE: Pace = { polite: true, rest: async () => undefined };

/** A clock that goes on only by what is slept. */
function madeUpClock(): { now(): number; sleep(ms: number): Promise<void>; advance(ms: number): void } {
  let at = 0;
  return {
    now: () => at,
    sleep: async (ms) => void (at += ms),
    advance: (ms) => void (at += ms),
  };
}

/** How long so many events take at that pace, in ms of that clock. */
async function took(clock: { now(): number }, pace: Pace, events: number): Promise<number> {
  const began = clock.now();
  await pace.rest(events);
  return clock.now() - began;
}

timed('work rests only while requests are answered, by how late their processes are', async () => {
  const records = memoryRecords(Date.now);
  const clock = madeUpClock();
  assert.ok((await turnsDuring(async () => FULL_SPEED.rest(1_000_000))) < 10);
  const free = considerate(records, clock);
  assert.is(await took(clock, free, 1_000_000), 0);
  assert.is(free.polite, false);
  await records.put('serving/one', { requests: 20, delayMs: 1 });
  const calm = considerate(records, clock);
  assert.equal([await took(clock, calm, 800), calm.polite], [100, true], '8,000 events a second');
  await records.put('serving/other', { requests: 5, delayMs: 40 });
  assert.is(await took(clock, considerate(records, clock), 100), 200, '500 a second: of several the worst counts');
});

timed('the pace follows the delay every second, and is full once no requests are answered', async () => {
  const records = memoryRecords(Date.now);
  const clock = madeUpClock();
  const put = async (delayMs: number): Promise<unknown> => records.put('serving/one', { requests: 20, delayMs });
  await put(1);
  const pace = considerate(records, clock);
  await pace.rest(0);
  clock.advance(1_000);
  assert.is(await took(clock, pace, 24_000), 2_400, '10,000 a second');
  await put(30);
  assert.is(await took(clock, pace, 1_000), 200, '5,000 a second');
  await records.delete('serving/one');
  clock.advance(1_000);
  assert.is(await took(clock, pace, 1_000_000), 0);
});

timed('a rate stays while the delay is between good and bad, and never falls below the least', async () => {
  const records = memoryRecords(Date.now);
  const clock = madeUpClock();
  const put = async (delayMs: number): Promise<unknown> => records.put('serving/one', { requests: 20, delayMs });
  await put(8);
  const pace = considerate(records, clock);
  assert.is(await took(clock, pace, 8_000), 1_000, '8 ms are not bad');
  for (const delayMs of [4, 8]) {
    await put(delayMs);
    assert.is(await took(clock, pace, 8_000), 1_000, `${delayMs} ms`);
  }
  await put(30);
  for (let polls = 0; polls < 6; polls++) await took(clock, pace, 8_000);
  assert.is(await took(clock, pace, 1_000), 2_000, '500 a second');
});

timed('the load is polled once a second, and no more often', async () => {
  const records = memoryRecords(Date.now);
  let polls = 0;
  const counted = { ...records, list: async <V>(prefix: string) => ((polls += 1), records.list<V>(prefix)) };
  const clock = madeUpClock();
  const pace = considerate(counted, clock);
  for (const ms of [0, 500, 499, 1]) {
    clock.advance(ms);
    await pace.rest(0);
  }
  assert.is(polls, 2);
});

timed('a rest of less than a millisecond is left out', async () => {
  const records = memoryRecords(Date.now);
  await records.put('serving/one', { requests: 20, delayMs: 1 });
  const clock = madeUpClock();
  const pace = considerate(records, clock);
  assert.is(await took(clock, pace, 7), 0);
  assert.is(await took(clock, pace, 1), 1, 'it is made up for');
});

timed('a write of a part is followed by a pause as long as it took, at most 50 ms', async () => {
  const none = (async function* () {})() as ReturnType<EventStore['follow']>;
  const collection = { name: 'c', version: 1, indexes: [] };
  const wrote = async (ms: number, count: number): Promise<number> => {
    const store: Pick<ReadStore, 'write'> = { write: async () => sleep(ms) };
    const engines = { events: { follow: () => none, readAll: () => none }, store };
    const documents = Array.from({ length: count }, (_, n) => ({ id: `d${n}`, position: '1', body: {} }));
    const start = performance.now();
    await paced(engines, POLITE).store.write([{ collection, documents }]);
    return Math.round(performance.now() - start);
  };
  assert.is(await wrote(20, 10), 40);
  assert.is(await wrote(20, 400), 80, 'two parts');
  assert.is(await wrote(200, 10), 250);
});

timed('a rest ends with the signal; the pace stays while the store does not answer', async () => {
  const records = memoryRecords(Date.now);
  await records.put('serving/one', { requests: 20, delayMs: 1 });
  let down = false;
  const pace = considerate({
    ...records,
    list: async <V>(prefix: string) => (down ? Promise.reject(new UnavailableError('down')) : records.list<V>(prefix)),
  });
  await pace.rest(0);
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 20);
  await pace.rest(10_000_000, stop.signal);
  down = true;
  await sleep(1_010);
  await pace.rest(0, AbortSignal.abort());
  assert.is(pace.polite, true);
});

timed('reading goes on in small batches from the same place while requests are answered', async () => {
  const requested: [string | undefined, number | undefined][] = [];
  async function* read(
    after: string | undefined,
    _filter: unknown,
    options: { readonly batchSize?: number } = {},
  ): AsyncGenerator<EventBatch> {
    requested.push([after, options.batchSize]);
    for (let at = Number(after ?? 0) + 1; at <= 4; at++) yield { events: [], position: String(at), caughtUp: at === 4 };
  }
  let polite = true;
  const pace: Pace = {
    get polite() {
      return polite;
    },
    rest: async () => undefined,
  };
  const follow = read as EventStore['follow'];
  const { events } = paced({ events: { follow, readAll: follow }, store: { write: async () => undefined } }, pace);
  const positions: string[] = [];
  for await (const batch of events.follow(undefined, undefined, { batchSize: 1_000 })) {
    positions.push(batch.position);
    if (batch.position === '2') polite = false;
  }
  assert.equal(positions, ['1', '2', '3', '4'], 'each once');
  assert.equal(requested, [
    [undefined, 100],
    ['2', 1_000],
  ]);
});

timed('writing goes in small parts while requests are answered, the checkpoint with the last', async () => {
  const written: WriteBatch[][] = [];
  const store = { write: async (batches: readonly WriteBatch[]) => void written.push([...batches]) };
  const none = (async function* () {})() as ReturnType<EventStore['follow']>;
  const engines = { events: { follow: () => none, readAll: () => none }, store };
  const collection = { name: 'c', version: 1, indexes: [] };
  const documents = Array.from({ length: 450 }, (_, n) => ({ id: `d${n}`, position: '1', body: {} }));
  const checkpoint = { projection: 'c@1', position: '1' };
  await paced(engines, FULL_SPEED).store.write([
    { collection, documents, checkpoint },
    { collection, documents: [] },
  ]);
  assert.equal(
    written.map((batches) => batches.length),
    [2],
  );
  written.length = 0;
  await paced(engines, POLITE).store.write([
    { collection, documents },
    { collection, documents, checkpoint },
    { collection, documents: [], checkpoint },
  ]);
  assert.equal(
    written.map(([batch]) => [batch?.documents.length, batch?.checkpoint !== undefined]),
    [
      [200, false],
      [200, false],
      [50, false],
      [200, false],
      [200, false],
      [50, true],
      [0, true],
    ],
  );
  written.length = 0;
  await paced(engines, POLITE).store.write([{ collection, documents: documents.slice(0, 400), checkpoint }]);
  assert.equal(
    written.map(([batch]) => batch?.checkpoint),
    [undefined, checkpoint],
  );
});

timed('a process that answers requests reports once a second', async () => {
  const records = memoryRecords(Date.now);
  const reporter = reportServing({ records, holder: 'one', logger: silent });
  for (const route of ['/api/v2/gifts/:giftId', '/api/v2/gifts/:giftId', '/metrics', undefined])
    reporter.answered(route);
  await until(async () => (await records.get('serving/one')) !== undefined, 'the first report');
  const { requests, delayMs } = await servingNow(records);
  assert.ok(requests === 2 && delayMs >= 0, JSON.stringify({ requests, delayMs }));
  await records.put('serving/other', { requests: 3, delayMs: 900 });
  assert.equal(await servingNow(records), { requests: 5, delayMs: 900 });
  await records.delete('serving/other');
  const [said] = await records.list('serving/');
  const left = (said?.expiresAt ?? 0) - Date.now();
  assert.ok(left > 1_000 && left <= 3_500, `it is taken back by itself after ${left} ms`);
  await sleep(1_100);
  assert.is((await records.get('serving/one'))?.version, 1, 'and then no more');
  reporter.answered('/api/v2/gifts/:giftId');
  await until(async () => (await records.get('serving/one'))?.version === 2, 'the report of a second with a request');
  await reporter.close();
  reporter.answered('/api/v2/gifts/:giftId');
  await sleep(2_000);
  assert.is((await records.get('serving/one'))?.version, 2, 'and none once it is closed');
});

timed('reports the delay of the event loop without the time between two samples', async () => {
  const calls: string[] = [];
  const simulated = enterWorld(REAL_WORLD);
  enterWorld(simulated);
  Object.assign(simulated, {
    loopDelay: () => ({
      enable: () => calls.push('enable'),
      disable: () => calls.push('disable'),
      reset: () => undefined,
      percentile: () => 35e6,
    }),
  });
  const records = memoryRecords(Date.now);
  const reporter = reportServing({ records, holder: 'one', logger: silent });
  for (let requests = 0; requests < 3; requests++) reporter.answered('/api/v2/gifts/:giftId');
  await until(async () => (await records.get('serving/one')) !== undefined, 'the report');
  assert.equal(await servingNow(records), { requests: 3, delayMs: 30 });
  await until(() => calls.includes('disable'), 'a second without requests');
  assert.equal(calls, ['enable', 'disable'], 'measured only while requests come');
  await reporter.close();
});

test.run();
