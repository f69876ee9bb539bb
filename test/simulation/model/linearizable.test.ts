/** The search for an order, on a register: a number that acts set and read. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { seededRandom } from './random.js';
import { type Act, linearize } from './linearizable.js';
import { explain, smallest } from './smallest.js';

const test = suite('linearizability');

const set = (value: number, from: number, to?: number): Act<number> => ({
  from,
  to,
  required: to !== undefined,
  reads: false,
  apply: () => [value],
  describe: () => `set ${value}`,
  expects: () => 'anything',
});
const read = (value: number, from: number, to: number): Act<number> => ({
  from,
  to,
  required: true,
  reads: true,
  apply: (state) => (state === value ? [state] : []),
  describe: () => `read ${value}`,
  expects: (state) => `${state}`,
});
/** Counts up from 0 to 2 and around, or does nothing. */
const bump = (from: number, to: number): Act<number> => ({
  ...set(0, from, to),
  apply: (state) => [state, (state + 1) % 3],
  describe: () => 'bump',
});
/** The same act, which may have had no effect. */
const perhaps = (act: Act<number>): Act<number> => ({
  ...act,
  required: false,
  effect: act.describe(),
  describe: () => `${act.describe()}?`,
});
const orderExists = (...acts: readonly Act<number>[]): boolean => linearize(0, acts).kind === 'ok';

test('finds an order that agrees with the times', () => {
  assert.ok(orderExists());
  assert.ok(orderExists(read(0, 1, 2), set(1, 3, 4), read(1, 5, 6)));
  assert.ok(orderExists(set(1, 1, 10), read(0, 2, 3), read(1, 4, 5)));
  assert.ok(orderExists(set(1, 1, 10), set(2, 1, 10), read(1, 2, 9), read(2, 2, 9)));
});

test('finds that there is none', () => {
  assert.ok(!orderExists(set(1, 1, 2), read(0, 3, 4)));
  assert.ok(!orderExists(set(1, 1, 10), read(1, 2, 3), read(0, 4, 5)));
  assert.ok(!orderExists(set(1, 1, 10), set(2, 1, 10), read(1, 2, 3), read(2, 4, 5), read(1, 6, 7)));
  assert.ok(!orderExists(read(2, 1, 2)));
});

test('lets an act without an end happen late or never, and once', () => {
  assert.ok(orderExists(set(1, 1), read(0, 2, 3)));
  assert.ok(orderExists(set(1, 1), read(0, 2, 3), read(1, 4, 5)));
  assert.ok(!orderExists(set(1, 3), read(1, 1, 2)));
  assert.ok(!orderExists(set(1, 1), read(1, 2, 3), set(2, 4, 5), read(1, 6, 7)));
});

test('lets an act that may have happened do so before its end only', () => {
  assert.ok(orderExists(perhaps(set(1, 1, 3)), read(0, 2, 5), read(1, 6, 7)));
  assert.ok(!orderExists(perhaps(set(1, 1, 3)), read(0, 4, 5), read(1, 6, 7)));
  assert.ok(!orderExists(perhaps(set(1, 1, 3)), perhaps(set(2, 1, 3)), read(1, 4, 5), read(2, 6, 7)));
});

const random = seededRandom(7);
const whole = (below: number): number => Math.floor(random() * below);

/** Holds the search against a trial of every order of a few acts. */
function tried(rounds: number, act: (from: number, to: number) => Act<number>): void {
  let [good, bad] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const acts = Array.from({ length: 1 + whole(6) }, () => {
      const from = whole(12);
      return act(from, from + 1 + whole(6));
    });
    const expected = bySomeOrder(0, acts);
    assert.equal(
      orderExists(...acts),
      expected,
      acts.map((one) => `${one.describe()} ${one.from}–${one.to}`).join(', '),
    );
    if (expected) good++;
    else bad++;
  }
  assert.ok(good > rounds / 10 && bad > rounds / 10, `${good} good, ${bad} bad`);
}

test('agrees with a trial of every order', () => {
  tried(1_000, (from, to) => {
    if (random() < 0.5) return read(whole(3), from, to);
    const write = random() < 0.2 ? bump(from, to) : set(whole(3), from, random() < 0.3 ? undefined : to);
    return random() < 0.3 ? perhaps(write) : write;
  });
});

test('agrees with it where acts exclude states before them', () => {
  tried(1_000, (from, to) => {
    const count = whole(4);
    if (random() < 0.5) return { ...read(count, from, to), excludes: (state) => state > count };
    const write = { ...set(0, from, to), apply: (state: number) => [state + 1], describe: () => 'count' };
    return random() < 0.5 ? perhaps(write) : write;
  });
});

function bySomeOrder(state: number, acts: readonly Act<number>[]): boolean {
  if (acts.every((act) => !act.required)) return true;
  return acts.some((act, index) => {
    if (acts.some((other) => other.required && other.to !== undefined && other.to < act.from)) return false;
    const rest = acts
      .toSpliced(index, 1)
      .filter((other) => other.required || other.to === undefined || other.to >= act.from);
    return act.apply(state).some((next) => bySomeOrder(next, rest));
  });
}

test('gives up after so many steps, and says so', () => {
  const acts = Array.from({ length: 14 }, (_, index) => set(index, 1, 100));
  assert.equal(linearize(0, [...acts, read(99, 101, 102)], 50).kind, 'undecided');
});

test('follows thousands of acts', () => {
  const round = (at: number): Act<number>[] => [
    set(at, at, at + 5),
    perhaps(set(-1, at + 1, at + 50)),
    read(at, at + 6, at + 7),
  ];
  const acts = Array.from({ length: 1_000 }, (_, index) => round(10 * index)).flat();
  assert.ok(orderExists(...acts));
  assert.equal(linearize(0, [...acts, read(7, 40_000, 40_001)]).kind, 'wrong');
});

test('shows the smallest part that is wrong', () => {
  const acts = [set(1, 1, 2), ...[3, 5, 7, 9].map((at) => read(1, at, at + 1)), read(2, 11, 12), read(3, 13, 14)];
  const small = smallest(0, acts, (act) =>
    act.describe().startsWith('read') ? undefined : { ...act, required: false },
  );
  assert.ok(small !== undefined);
  const text = explain('the register', small, String);
  assert.match(text, /None of these can come next:\n {2}read 2\n {4}the model expects 1/);
  assert.doesNotMatch(text, /read [13]/);
});

test.run();
