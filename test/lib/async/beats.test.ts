import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { everyBeats, pauseForBeats } from '../../../src/lib/async/beats.js';
import { until } from '../../support/assertions/until.js';

const test = suite('pauses that end at beats');
const { signal: never } = new AbortController();

test('ends pauses of nearly the same length in one turn of the event loop', async () => {
  let turn = 0;
  const counting = setInterval(() => (turn += 1), 1);
  const toBeat = 250 - (performance.now() % 250);
  const ends = await Promise.all([490, 500, 510].map(async (ms) => pauseForBeats(toBeat + ms, never).then(() => turn)));
  clearInterval(counting);
  assert.is(new Set(ends).size, 1);
});

test('ends a pause by its signal, also one that was aborted before', async () => {
  const ending = new AbortController();
  const paused = pauseForBeats(100_000_000, ending.signal);
  ending.abort();
  await paused;
  await pauseForBeats(100_000_000, ending.signal);
});

test('repeats work until it is ended, alongside pauses that end later and earlier', async () => {
  const late = new AbortController();
  const pause = pauseForBeats(100_000_000, late.signal);
  let done = 0;
  const end = everyBeats(250, () => (done += 1));
  await until(() => done === 3);
  end();
  await pauseForBeats(750, never);
  assert.is(done, 3);
  late.abort();
  await pause;
});

test('a thread that was busy for several beats wakes all of them, but none that has ended', async () => {
  let [first, second] = [0, 0];
  const endFirst = everyBeats(250, () => {
    first += 1;
    endSecond();
  });
  const endSecond = everyBeats(500, () => (second += 1));
  const least: number[] = [];
  const { setTimeout: real } = globalThis;
  globalThis.setTimeout = Object.assign((then: () => void, ms = 0) => (least.push(ms), real(then, ms)), real);
  for (const until = performance.now() + 1_200; performance.now() < until;);
  await until(() => first > 0);
  globalThis.setTimeout = real;
  endFirst();
  assert.is(second, 0);
  assert.ok(least.length > 0 && least.every((ms) => ms >= 0), String(least));
});

test.run();
