/** When what failed is tried again; in which order; and who waits for whom. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { openBacklog, type Waiting } from '../../src/deliveries/backlog.js';
import { requestedPause, pauseAfter, RETRY_SCHEDULE } from '../../src/deliveries/retries.js';
import type { Outcome } from '../../src/deliveries/sender.js';
import { isFailing, type Health, type Verdict, verdictOf } from '../../src/deliveries/verdict.js';

const test = suite('deliveries/retries');
const NOW = Date.parse('2026-05-01T00:00:00.000Z');
const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600_000;

const item = (position: string, key = 'gift', more: Partial<Waiting> = {}): Waiting => ({
  position,
  key,
  at: '2026-05-01T00:00:00.000Z',
  tries: 0,
  ...more,
});
const judge = (
  outcome: Outcome,
  of: Partial<Waiting> = {},
  before: Health = { failures: 0 },
  now = NOW,
  lastAnswerAt?: number,
): Verdict =>
  verdictOf(outcome, item('1', 'gift', of), before, RETRY_SCHEDULE, {
    now,
    startedAt: now - SECOND_MS,
    lastAnswerAt,
    chance: 0,
  });
const UNREACHED: Outcome = { error: 'no way', unreached: true };
const answer = (status: number, retryAfter?: string): Outcome => ({
  status,
  response: '',
  ...(retryAfter === undefined ? {} : { retryAfter }),
});

test('pauses four times as long each time, less up to half at random, to six hours', () => {
  const seconds = [1, 2, 3, 4, 5, 6, 7, 8, 50].map((tries) => pauseAfter(tries, RETRY_SCHEDULE, 0) / 1_000);
  assert.deepEqual(seconds, [5, 20, 80, 320, 1_280, 5_120, 20_480, 21_600, 21_600]);
  assert.equal(pauseAfter(1, RETRY_SCHEDULE, 1), 2_500);
});

test('reads Retry-After in seconds or as a date, up to a day', () => {
  for (const [header, ms] of [
    [undefined, undefined],
    ['120', 120_000],
    [' 5 ', 5_000],
    ['0', undefined],
    ['-3', undefined],
    ['soon', undefined],
    ['45.5', undefined],
    ['33.12', undefined],
    ['2030-01-01', undefined],
    ['30 Nov 2030', undefined],
    ['999999999999', DAY_MS],
    ['Fri, 01 May 2026 00:10:00 GMT', 600_000],
    ['Thu, 30 Apr 2026 23:00:00 GMT', undefined],
    ['Sat, 01 May 2027 00:00:00 GMT', DAY_MS],
  ] as const)
    assert.equal(requestedPause(header, NOW), ms, String(header));
});

test('takes 2xx alone for success', () => {
  for (const status of [200, 201, 204, 299]) assert.equal(judge(answer(status)).delivered, true);
  for (const status of [199, 301, 308, 400, 404, 410, 429, 500, 503])
    assert.equal(judge(answer(status)).delivered, false);
  assert.equal(judge({ error: 'no' }).delivered, false);
});

test('tries again after the pause, and no sooner than the receiver asks', () => {
  assert.equal(judge(answer(500)).again?.nextAt, NOW + 5_000);
  const requested = judge(answer(503, '60'));
  assert.equal(requested.again?.nextAt, NOW + 60_000);
  assert.equal(requested.health.pausedUntil, NOW + 60_000);
  const before = { failures: 1, pausedUntil: NOW + 60_000 };
  assert.equal(judge(answer(200), {}, before).health.pausedUntil, NOW + 60_000, 'one that was under way');
});

test('gives up what fails three days after its first attempt', () => {
  const soon = judge(answer(500), { tries: 9, firstAt: NOW - 3 * DAY_MS + 1 });
  assert.deepEqual([soon.abandoned, soon.again?.tries], [false, 10]);
  const late = judge(answer(500), { tries: 9, firstAt: NOW - 3 * DAY_MS });
  assert.deepEqual([late.abandoned, late.again], [true, undefined]);
});

test('disables at 410, and after five days without a success', () => {
  assert.equal(judge(answer(410)).disable, 'gone');
  assert.equal(judge(answer(410), { ping: 'p' }).disable, 'gone');
  const since = (failingSince: number): Health => ({ failures: 9, failingSince });
  assert.equal(judge(answer(500), {}, since(NOW - 5 * DAY_MS + 1)).disable, undefined);
  assert.equal(judge(answer(500), {}, since(NOW - 5 * DAY_MS)).disable, 'failures');
  assert.deepEqual(judge(answer(200), {}, since(NOW - 9 * DAY_MS)).health, { failures: 0 });
  const quiet = { ...since(NOW - 30 * DAY_MS), failedAt: NOW - 27 * DAY_MS };
  const again = judge(answer(500), {}, quiet);
  assert.deepEqual([again.disable, again.health.failingSince], [undefined, NOW], 'nothing was sent for a month');
});

test('tries a ping once, whose failure says nothing of the endpoint', () => {
  const { again, health, abandoned } = judge(answer(500), { ping: 'p' }, { failures: 2 });
  assert.deepEqual([again, health, abandoned], [undefined, { failures: 2 }, false]);
});

test('counts an endpoint as failing from the fifth failure in a row', () => {
  let health: Health = { failures: 0 };
  const seen = Array.from({ length: 6 }, () => {
    ({ health } = judge({ error: 'no' }, {}, health));
    return isFailing(health);
  });
  assert.deepEqual(seen, [false, false, false, false, true, true]);
});

test('hands out one of a key at a time, the earliest first, though it was added later', () => {
  const backlog = openBacklog([item('2'), item('3'), item('5', 'other')]);
  const first = backlog.take(NOW);
  assert.equal(first?.position, '2');
  assert.equal(backlog.take(NOW)?.position, '5');
  assert.equal(backlog.take(NOW), undefined);
  backlog.add(item('1'));
  backlog.done(first as Waiting);
  assert.equal(backlog.take(NOW)?.position, '1', 'one that is sent again');
  assert.equal(backlog.size, 3);
  assert.deepEqual(
    backlog.items().map(({ position }) => position),
    ['1', '3', '5'],
  );
});

test('holds what follows a failure of its key until that is due', () => {
  const backlog = openBacklog([item('1'), item('2')]);
  const first = backlog.take(NOW) as Waiting;
  backlog.putBack(first, { ...first, tries: 1, nextAt: NOW + 5_000 });
  assert.equal(backlog.take(NOW + 4_999), undefined);
  assert.equal(backlog.nextDueAt(), NOW + 5_000);
  assert.deepEqual(backlog.oldest(), { failed: first.at });
  assert.equal(backlog.take(NOW + 5_000)?.tries, 1);
  backlog.putBack(first, { ...first, tries: 2, nextAt: NOW + 50_000 });
  backlog.allDue();
  assert.equal(backlog.take(NOW)?.tries, 2);
});

test('ends a wait that is longer than any may be, as one by a clock that was ahead', () => {
  const ahead = NOW + 10 * DAY_MS;
  assert.ok(openBacklog([item('1', 'gift', { tries: 1, nextAt: ahead })]).take(NOW) !== undefined);
  assert.ok(openBacklog([item('1')]).take(NOW, ahead) !== undefined);
  const { again, health } = judge(answer(500), {}, { failures: 0, pausedUntil: ahead });
  assert.deepEqual([again?.nextAt, health.pausedUntil], [NOW + 5 * SECOND_MS, undefined]);
});

test('counts no attempt at an earlier url against an event', () => {
  const failed = { tries: 9, firstAt: NOW - 3 * DAY_MS, nextAt: NOW + 5 };
  const backlog = openBacklog([item('1', 'gift', failed)]);
  backlog.startAfresh();
  const taken = backlog.take(NOW) as Waiting;
  const { again, abandoned } = judge(answer(500), taken);
  assert.deepEqual([again?.tries, again?.firstAt, abandoned], [1, NOW, false]);
});

test('adds what waits already only to make it due', () => {
  const backlog = openBacklog([item('1', 'gift', { tries: 3, nextAt: NOW + 9 })]);
  assert.equal(backlog.take(NOW), undefined);
  backlog.add(item('1'));
  assert.equal(backlog.size, 1);
  assert.deepEqual(openBacklog(backlog.items()).take(NOW), backlog.items()[0], 'after a restart, too');
  assert.equal(backlog.nextDueAt(), 0);
  assert.equal(backlog.take(NOW)?.tries, 3);
});

test('moves no retry, and gives nothing up, where an owner asks in vain before one is due', () => {
  const waiting = { tries: 9, firstAt: NOW - 3 * DAY_MS, nextAt: NOW + 5 };
  const backlog = openBacklog([item('1', 'gift', waiting)]);
  for (const outcome of [answer(500), UNREACHED]) {
    backlog.add(item('1'));
    const requested = backlog.take(NOW) as Waiting;
    const { again, abandoned, health } = judge(outcome, requested);
    assert.deepEqual([again, abandoned, health.failures], [item('1', 'gift', waiting), false, 1]);
    backlog.putBack(requested, again);
  }
  assert.equal(backlog.take(NOW), undefined);
  const due = judge(answer(500), { ...waiting, requested: true, nextAt: NOW });
  assert.equal(due.abandoned, true, 'it was due by then');
});

test('holds nothing against an endpoint while none answers', () => {
  const before = { failures: 9, failingSince: NOW - 6 * DAY_MS, failedAt: NOW - DAY_MS };
  const of = { tries: 4, firstAt: NOW - 4 * DAY_MS };
  for (const last of [undefined, NOW - DAY_MS]) {
    const { ours, disable, abandoned, again, health } = judge(UNREACHED, of, before, NOW, last);
    assert.deepEqual([ours, disable, abandoned], [true, undefined, false]);
    assert.deepEqual(again, item('1', 'gift', { ...of, tries: 5, nextAt: NOW + 1_280_000 }));
    assert.deepEqual(health, { failures: 10, failingSince: NOW - 5 * DAY_MS, failedAt: NOW }, 'a day is left out');
  }
  for (const last of [NOW - DAY_MS + 1, NOW]) {
    const { ours, disable } = judge(UNREACHED, of, before, NOW, last);
    assert.deepEqual([ours, disable], [false, 'failures'], 'another has answered since the failure before');
  }
  assert.equal(judge({ error: 'refused' }, of, before).ours, false, 'its host has answered');
  const first = judge(UNREACHED);
  assert.deepEqual([first.health.failingSince, first.again?.firstAt], [undefined, undefined], 'no failure of its own');
  assert.equal(judge(UNREACHED, {}, { failures: 0 }, NOW, NOW - 999).ours, false, 'answered meanwhile');
  assert.equal(judge(UNREACHED, { ping: 'p' }).ours, true);
});

test.run();
