/** Which requests are begun and which are refused, by a clock of the test's own (docs/limits.md#overload). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { requestTurns } from '../../../src/api/listener/requestTurns.js';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';

const MOST_WAIT_MS = 100;
const TURN_MS = 8;

const test = suite('turns of requests');
test.after.each(() => void enterWorld(REAL_WORLD));

interface Taken {
  readonly came: number;
  readonly isBegun: boolean;
  readonly waited: number;
}

/** Requests at an event loop whose time is the work that it does. */
function loop(mostWaitMs: number) {
  let now = 0;
  let ends: (() => void)[] = [];
  enterWorld({ ...REAL_WORLD, ticks: () => now, soon: (run) => void ends.push(run) });
  const turns = requestTurns(mostWaitMs);
  const taken: Taken[] = [];
  return {
    taken,
    refused: turns.refused,
    now: () => now,
    /** @param costMs of the work that begins it */
    request(costMs: number): void {
      const came = now;
      const isIn = turns.take(() => {
        taken.push({ came, isBegun: true, waited: now - came });
        now += costMs;
      });
      if (!isIn) taken.push({ came, isBegun: false, waited: 0 });
    },
    /** Ends a turn of the event loop. @param otherMs of other work in it */
    async turn(otherMs = 0): Promise<void> {
      now += otherMs;
      const all = ends;
      ends = [];
      for (const end of all) {
        end();
        await new Promise(setImmediate);
      }
    },
    isIdle: () => ends.length === 0,
  };
}
type Loop = ReturnType<typeof loop>;

async function untilIdle(one: Loop): Promise<void> {
  while (!one.isIdle()) await one.turn();
}

/** Requests at a steady rate, each of 1 ms of work. @param share of what the loop can do */
async function offer(one: Loop, share: number, forMs: number): Promise<void> {
  let due = one.now();
  for (const end = due + forMs; one.now() < end;) {
    if (due > one.now()) await one.turn(1);
    for (; due <= one.now(); due += 1 / share) one.request(1);
    await one.turn();
  }
}

const refusedOf = ({ taken }: Loop): readonly Taken[] => taken.filter(({ isBegun }) => !isBegun);
const longest = (taken: readonly Taken[]): number => Math.max(0, ...taken.map(({ waited }) => waited));

test('a burst is begun in the order in which it came, and nobody is refused', async () => {
  const one = loop(MOST_WAIT_MS);
  for (let n = 0; n < 60; n++) one.request(1);
  assert.equal(one.taken.length, 8, 'a turn ends after 8 ms');
  await untilIdle(one);
  assert.equal(one.taken.length, 60);
  assert.deepEqual(refusedOf(one), []);
  const waits = one.taken.map(({ waited }) => waited);
  assert.deepEqual(
    waits,
    [...waits].sort((a, b) => a - b),
  );
});

test('one turn begins no more than a hundred requests, however little they take', async () => {
  const one = loop(MOST_WAIT_MS);
  for (let n = 0; n < 250; n++) one.request(0);
  const begun = [one.taken.length];
  for (; !one.isIdle(); begun.push(one.taken.length)) await one.turn();
  assert.deepEqual(begun.slice(0, 3), [100, 200, 250]);
});

test('below what the loop can do nobody is refused', async () => {
  const one = loop(MOST_WAIT_MS);
  await offer(one, 0.9, 5_000);
  await untilIdle(one);
  assert.deepEqual(refusedOf(one), []);
});

for (const share of [1.5, 2, 10])
  test(`at ${share} times what the loop can do it is as busy as ever, and nobody waits for long`, async () => {
    const one = loop(MOST_WAIT_MS);
    await offer(one, share, 5_000);
    await untilIdle(one);
    const begun = one.taken.filter(({ isBegun }) => isBegun);
    assert.ok(begun.length > 4_900, `${begun.length} begun`);
    // In the first turns nothing has told yet how long requests wait.
    const later = begun.filter(({ came }) => came > 5 * MOST_WAIT_MS);
    assert.ok(longest(later) <= MOST_WAIT_MS + TURN_MS, `begun after ${longest(later)} ms`);
    const before = one.refused();
    assert.equal(before, refusedOf(one).length);
    await offer(one, 0.5, 1_000);
    await untilIdle(one);
    assert.equal(one.refused(), before, 'nobody is refused afterwards');
  });

test('long work in one turn is no overload', async () => {
  const one = loop(MOST_WAIT_MS);
  one.request(500);
  for (let n = 0; n < 20; n++) one.request(1);
  await untilIdle(one);
  for (let n = 0; n < 20; n++) one.request(1);
  await one.turn(500);
  await untilIdle(one);
  assert.deepEqual(refusedOf(one), []);
  assert.equal(one.taken.length, 41);
});

test('nobody is refused once a few requests with long work each have been begun', async () => {
  const one = loop(MOST_WAIT_MS);
  for (let n = 0; n < 8; n++) one.request(2 * MOST_WAIT_MS);
  await untilIdle(one);
  for (let n = 0; n < 60; n++) one.request(1);
  await untilIdle(one);
  assert.equal(one.taken.length, 68);
  assert.deepEqual(refusedOf(one), []);
});

test('without a limit each request is begun', async () => {
  const one = loop(0);
  await offer(one, 3, 2_000);
  await untilIdle(one);
  assert.equal(one.refused(), 0);
  assert.ok(longest(one.taken) > 1_000);
});

test.run();
