import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCounter } from '../../../src/runtime/limits/sharedCounter.js';

const test = suite('counters that processes share');
const START = Date.parse('2026-03-01T12:00:00Z');
const QUOTA = { name: 'pets', limit: 40, windowSeconds: 60 };

function setUp(quota = QUOTA): { clock: { ms: number }; counters: SharedCounter[] } {
  const clock = { ms: START };
  return { clock, counters: [0, 1, 2].map(() => new SharedCounter(quota, () => clock.ms)) };
}

const times = (count: number, work: (index: number) => void): void => {
  for (let index = 0; index < count; index++) work(index);
};

/** Each hears what all others tell. */
function exchange(counters: readonly SharedCounter[]): void {
  const exchanged = counters.map((counter) => counter.publish());
  for (const [index, counter] of counters.entries())
    counter.hear(exchanged.filter((_, other) => other !== index).flat());
}

test('counts a key up to its limit, and anew in its next window', () => {
  const { clock, counters } = setUp();
  const [counter] = counters as [SharedCounter];
  times(39, (index) => assert.is(counter.take('cat').left, 40 - index));
  assert.ok(counter.hasRoomForAll);
  assert.is(counter.take('cat').left, 1);
  assert.not.ok(counter.hasRoomForAll);
  const full = counter.take('cat');
  assert.is(full.left, 0);
  assert.ok(full.seconds >= 1 && full.seconds <= 60);
  assert.is(counter.peek('dog').left, 40);
  clock.ms += full.seconds * 1_000 - 1_000;
  assert.is(counter.peek('cat').left, 0);
  clock.ms += 1_000;
  assert.is(counter.peek('cat').left, 40);
  assert.ok(counter.hasRoomForAll);
});

test('ends the windows of different keys at different times, the same in every process', () => {
  const { counters } = setUp();
  const names = Array.from({ length: 200 }, (_, index) => `user-${index}`);
  const ends = counters.map((counter) => names.map((name) => counter.peek(name).seconds));
  assert.equal(ends[0], ends[1]);
  assert.ok(new Set(ends[0]).size > 40, `${new Set(ends[0]).size} different ends`);
});

test('refuses what others have counted, as soon as they told', () => {
  const { counters } = setUp();
  const [one, other, third] = counters as [SharedCounter, SharedCounter, SharedCounter];
  times(20, () => one.take('cat'));
  times(15, () => other.take('cat'));
  assert.is(third.peek('cat').left, 40);
  exchange(counters);
  assert.equal(
    counters.map((counter) => counter.peek('cat').left),
    [5, 5, 5],
  );
  times(5, () => third.take('cat'));
  exchange(counters);
  assert.equal(
    counters.map((counter) => [counter.hasRoomForAll, counter.take('cat').left]),
    [
      [false, 0],
      [false, 0],
      [false, 0],
    ],
  );
});

test('passes its limit by what processes count between two exchanges, and no more', () => {
  const { counters } = setUp();
  let taken = 0;
  const flood = (): void =>
    counters.forEach((counter) =>
      times(8, () => {
        if (counter.take('cat').left > 0) taken++;
      }),
    );
  for (let round = 0; round < 10; round++) {
    flood();
    exchange(counters);
  }
  assert.ok(taken >= 40 && taken <= 40 + 2 * 8, `${taken} were taken`);
});

test('tells nothing of keys below a twentieth of the limit, and wakes for each twentieth more', () => {
  const { counters } = setUp({ ...QUOTA, limit: 200 });
  const [counter] = counters as [SharedCounter];
  let woken = 0;
  counter.onGrowth = () => woken++;
  times(9, () => counter.take('cat'));
  assert.equal([counter.publish(), woken], [[], 0]);
  counter.take('cat');
  assert.is(woken, 1);
  assert.equal(
    counter.publish().map(([key, , count]) => [key, count]),
    [['cat', 10]],
  );
  times(9, () => counter.take('cat'));
  assert.is(woken, 1);
  times(5, () => counter.take('cat'));
  assert.is(woken, 2);
});

test('forgets what others told once their window is over', () => {
  const { clock, counters } = setUp();
  const [one, other] = counters as [SharedCounter, SharedCounter];
  times(40, () => one.take('cat'));
  exchange(counters);
  const { left, seconds } = other.peek('cat');
  assert.is(left, 0);
  clock.ms += seconds * 1_000;
  assert.is(other.peek('cat').left, 40);
  assert.equal(one.publish(), []);
});

test('starts a new window where the clock was set back', () => {
  const { clock, counters } = setUp();
  const [counter] = counters as [SharedCounter];
  times(40, () => counter.take('cat'));
  clock.ms -= 86_400_000;
  const { left, seconds } = counter.peek('cat');
  assert.is(left, 40);
  assert.ok(seconds <= 60);
});

test('holds 50,000 keys and tells of 2,000, however many there are', () => {
  const { counters } = setUp({ ...QUOTA, limit: 20 });
  const [counter] = counters as [SharedCounter];
  times(5, () => counter.take('first'));
  times(3, () => counter.take('hot'));
  times(49_999, (index) => {
    counter.take(`guess-${index}`);
    if (index % 10_000 === 0) counter.take('hot');
  });
  assert.is(counter.peek('first').left, 20);
  assert.is(counter.peek('hot').left, 12);
  const exchanged = counter.publish();
  assert.is(exchanged.length, 2_000);
  assert.equal(exchanged[0]?.slice(0, 1), ['hot']);
});

test.run();
