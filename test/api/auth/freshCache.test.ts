import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freshCache } from '../../../src/api/auth/freshCache.js';
import { clockAt } from './support.js';

const test = suite('fresh cache');

/** A cache of answers that the test gives when it likes. */
function setUp(max = 10) {
  const clock = clockAt(10_000);
  const answers: { key: string; resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const cache = freshCache<number>({
    max,
    now: clock.now,
    look: async (key) => new Promise((resolve, reject) => answers.push({ key, resolve, reject })),
  });
  return { cache, clock, answers };
}

test('one look-up serves all who ask meanwhile, and half a second more from its beginning', async () => {
  const { cache, clock, answers } = setUp();
  const both = [cache.load('a'), cache.load('a')];
  assert.is(answers.length, 1);
  clock.ms += 300;
  answers[0]?.resolve(1);
  assert.equal(await Promise.all(both), [1, 1]);
  clock.ms += 199;
  assert.is(cache.peek('a')?.value, 1);
  clock.ms += 1;
  assert.is(cache.peek('a'), undefined);
});

test('a look-up that takes longer than that is not waited for by who comes later', async () => {
  const { cache, clock, answers } = setUp();
  const slow = cache.load('a');
  clock.ms += 500;
  const later = cache.load('a');
  assert.is(answers.length, 2);
  answers[0]?.resolve(1);
  assert.is(await slow, 1);
  assert.is(cache.peek('a'), undefined);
  const beside = cache.load('a');
  assert.is(answers.length, 2);
  answers[1]?.resolve(2);
  assert.equal([await later, await beside, cache.peek('a')?.value], [2, 2, 2]);
});

test('one that ends after a later one does not take its place', async () => {
  const { cache, clock, answers } = setUp();
  const slow = cache.load('a');
  clock.ms += 500;
  const later = cache.load('a');
  answers[1]?.resolve(2);
  assert.is(await later, 2);
  answers[0]?.resolve(1);
  assert.is(await slow, 1);
  assert.is(cache.peek('a')?.value, 2);
});

test('what was forgotten or set meanwhile is not overwritten by an older look-up', async () => {
  const { cache, answers } = setUp();
  const before = [cache.load('a'), cache.load('b')];
  cache.forget('a');
  cache.set('b', 22);
  answers[0]?.resolve(1);
  answers[1]?.resolve(2);
  assert.equal(await Promise.all(before), [1, 2]);
  assert.is(cache.peek('a'), undefined);
  assert.is(cache.peek('b')?.value, 22);
});

test('a failed look-up is not remembered', async () => {
  const { cache, answers } = setUp();
  const failed = cache.load('a');
  answers[0]?.reject(new Error('down'));
  await failed.then(
    () => assert.unreachable(),
    (error: Error) => assert.is(error.message, 'down'),
  );
  const again = cache.load('a');
  answers[1]?.resolve(1);
  assert.is(await again, 1);
});

test('a clock set back does not make an entry last longer', () => {
  const { cache, clock } = setUp();
  cache.set('a', 1);
  clock.ms -= 1;
  assert.is(cache.peek('a'), undefined);
});

test('it is bounded', () => {
  const { cache } = setUp(2);
  for (const key of ['a', 'b', 'c']) cache.set(key, 1);
  assert.is(cache.peek('a'), undefined);
  assert.is(cache.peek('c')?.value, 1);
});

test.run();
