import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lastOfLog, type LogFilter, readLog, unknownLogFilter } from '../../../src/ops/history/readLog.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';

const test = suite('history/readLog');

/** A log of 300 events: a gift's at every tenth position, a calls' record at every third, else a user's. */
function log(): MemoryEvents {
  const events = memoryEvents();
  for (let n = 1; n <= 300; n++) {
    const stream =
      n % 10 === 0 ? `gift-${n % 20 === 0 ? 'even' : 'odd'}` : n % 3 === 0 ? 'access-2026-05-04' : 'user-u1';
    events.given(stream, { type: n % 10 === 0 ? 'GiftClaimed' : 'UserChanged', data: { n } });
  }
  return events;
}

const numbersOf = (found: readonly { readonly data: object }[]): number[] =>
  found.map(({ data }) => (data as { readonly n: number }).n);
const at = (position: number): string => String(position).padStart(16, '0');

async function read(filter: LogFilter, after?: number, through = 300): Promise<number[]> {
  const range = { after: after === undefined ? null : at(after), through: at(through), from: null, to: null };
  const found: number[] = [];
  for await (const { events } of readLog(log(), range, filter)) found.push(...numbersOf(events));
  return found;
}

test('reads what matches all filters, without access records', async () => {
  const all = await read({});
  assert.is(all.length, 300 - 90);
  assert.equal(await read({ category: 'gift' }, 250), [260, 270, 280, 290, 300]);
  assert.equal(await read({ stream: 'gift-even' }, 240, 290), [260, 280]);
  assert.equal(await read({ stream: 'gift-even', category: 'gift', type: 'GiftClaimed' }, 260), [280, 300]);
  assert.equal(await read({ stream: 'gift-even', category: 'user' }), []);
  assert.equal(await read({ category: 'gif' }), []);
  assert.equal(await read({ correlation_id: 'another' }), []);
  assert.equal(await read({ correlation_id: 'given' }), all);
  assert.equal(await read({ category: 'access' }), []);
});

/** The last events of a log, and how many were read for them. */
async function last(count: number, filter: LogFilter, withinMs = Number.POSITIVE_INFINITY) {
  const events = log();
  let given = 0;
  const counted: EventStore = {
    ...events,
    async *readAll(...args) {
      for await (const batch of events.readAll(...args)) {
        given += batch.events.length;
        yield batch;
      }
    },
  };
  const found = await lastOfLog(counted, (await events.end()) ?? null, filter, { count, withinMs });
  return { numbers: numbersOf(found.events), after: found.after, given };
}

test('finds the last that match, and goes back only as far as they are', async () => {
  assert.equal((await last(3, {})).numbers, [298, 299, 300]);
  assert.equal((await last(3, { category: 'gift' })).numbers, [280, 290, 300]);
  assert.equal((await last(2, { stream: 'gift-odd' })).numbers, [270, 290]);
  assert.equal((await last(1_000, { category: 'gift' })).numbers.length, 30);
  assert.is((await last(1_000, {})).after, null);
  assert.equal((await last(4, { correlation_id: 'another' })).numbers, []);
  const few = await last(2, {});
  assert.equal([few.given, few.after], [2, at(298)]);
  const rare = await last(3, { category: 'gift' });
  assert.equal([rare.given, rare.after], [1 + 2 + 5, at(270)], 'nothing that matches lies after it and is left out');
});

test('ends a search that takes too long with what it found, and says from where', async () => {
  const { numbers, after } = await last(20, { category: 'gift' }, 0);
  assert.equal(numbers, [290, 300]);
  assert.is(after, at(280));
});

test('names a filter that no event can match', async () => {
  const unknown = async (filter: LogFilter) => unknownLogFilter(log(), filter);
  assert.is(
    await unknown({ stream: 'gift-odd', category: 'gift', type: 'GiftClaimed', correlation_id: 'x' }),
    undefined,
  );
  assert.equal(await unknown({ stream: 'gift-od' }), { name: 'stream', words: 'the log knows no stream "gift-od"' });
  assert.equal(await unknown({ type: 'GiftEaten' }), { name: 'type', words: 'this release knows no type "GiftEaten"' });
  for (const name of ['stream', 'category'] as const)
    assert.is((await unknown({ [name]: name === 'stream' ? 'access-2026-05-04' : 'access' }))?.name, name);
});

test.run();
