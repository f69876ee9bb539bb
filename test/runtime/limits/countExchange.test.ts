import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Records } from '../../../src/ports/readStore.js';
import { countExchange } from '../../../src/runtime/limits/countExchange.js';
import { SharedCounter } from '../../../src/runtime/limits/sharedCounter.js';
import { eventually, until } from '../../support/assertions/until.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('the exchange of counts');
const QUOTA = { name: 'pets', limit: 40, windowSeconds: 3_600 };

interface Process {
  readonly counter: SharedCounter;
  readonly troubles: (Error | undefined)[];
  take(count: number): void;
  left(): number;
  close(): Promise<void>;
}

/** With a clock that stands still, lest a window ends. */
function startOn(records: Pick<Records, 'list' | 'put'>): Process {
  const started = Date.now();
  const counter = new SharedCounter(QUOTA, () => started);
  const closing = new AbortController();
  const troubles: (Error | undefined)[] = [];
  const running = countExchange(
    [counter],
    records,
  )({
    signal: closing.signal,
    well: () => undefined,
    onTrouble: (error) => troubles.push(error),
  });
  return {
    counter,
    troubles,
    take(count) {
      for (let index = 0; index < count; index++) counter.take('cat');
    },
    left: () => counter.peek('cat').left,
    async close() {
      closing.abort();
      await running;
    },
  };
}

test('makes processes count together, in one record each', async () => {
  const records = memoryRecords(Date.now);
  const processes = [startOn(records), startOn(records), startOn(records)];
  try {
    for (const process of processes) process.take(10);
    await until(() => processes.every((process) => process.left() === 10), 'all know of all');
    assert.is((await records.list('')).length, 3);
  } finally {
    for (const process of processes) await process.close();
  }
});

test('hears of a burst', async () => {
  const records = memoryRecords(Date.now);
  const [one, other] = [startOn(records), startOn(records)];
  try {
    await eventually(() => (one.take(1), other.take(1), one.left() <= 20));
    one.take(10);
    other.take(2);
    await until(() => other.left() === one.left(), 'both know of both');
  } finally {
    await one.close();
    await other.close();
  }
});

test('writes no record while nothing is worth telling, nor the same one twice', async () => {
  const stored = memoryRecords(Date.now);
  let puts = 0;
  const records: Pick<Records, 'list' | 'put'> = {
    list: stored.list,
    put: async (...args) => {
      puts++;
      return stored.put(...args);
    },
  };
  const process = startOn(records);
  process.take(1);
  await process.close();
  assert.is(puts, 0);
  const other = startOn(records);
  other.take(10);
  await until(() => puts > 0);
  await other.close();
  assert.is(puts, 1);
});

test('a process that ends tells what it counted last, and the next one starts with that', async () => {
  const records = memoryRecords(Date.now);
  const first = startOn(records);
  first.take(40);
  await first.close();
  const next = startOn(records);
  try {
    await until(() => next.left() === 0);
    const [record] = await records.list('');
    assert.ok((record?.expiresAt ?? 0) <= Date.now() + 3_600_000 + 5_000);
  } finally {
    await next.close();
  }
});

test('counts alone while the records are away, and together once they are back', async () => {
  const stored = memoryRecords(Date.now);
  let down = true;
  const up = async <T>(work: () => Promise<T>): Promise<T> => {
    if (down) throw new UnavailableError('the records are away');
    return work();
  };
  const records: Pick<Records, 'list' | 'put'> = {
    list: async (...args) => up(async () => stored.list(...args)),
    put: async (...args) => up(async () => stored.put(...args)),
  };
  const [one, other] = [startOn(records), startOn(records)];
  try {
    one.take(15);
    other.take(50);
    await until(() => one.troubles.length > 0 && other.troubles.length > 0);
    assert.equal([one.left(), other.left()], [25, 0]);
    down = false;
    await until(() => one.left() === 0, 'the other’s counts');
  } finally {
    await one.close();
    await other.close();
  }
});

test('ends with an error of another class, so that it is noticed and started again', async () => {
  const { signal } = new AbortController();
  const broken = countExchange([], { list: async () => Promise.reject(new TypeError('no list')), put: async () => 1 });
  await broken({ signal, well: () => undefined, onTrouble: () => undefined }).then(
    () => assert.unreachable(),
    (error: unknown) => assert.instance(error, TypeError),
  );
});

test.run();
