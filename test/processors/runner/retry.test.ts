import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import { MalformedMessageError } from '../../../src/messages/workerRequest.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../../src/ports/bus.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { AlteredDataError } from '../../../src/runtime/personal/alteredData.js';
import {
  afterFailure,
  answered,
  GiveUpError,
  neverStarted,
  NotYetError,
  RETRY_POLICY,
  waitAfter,
} from '../../../src/processors/runner/retry.js';

const test = suite('retry');

/** The moment at which an attempt has failed, each before it in the same way. */
const on = (attempt: number, heldUpMs: number): Parameters<typeof afterFailure>[1] => ({
  attempt,
  failures: attempt,
  heldUpMs,
});

test('waits longer after each failure, up to a bound, less up to half by chance', () => {
  const retryPolicy = { retryMs: 50, retryAtMostMs: 1_000 };
  assert.equal(
    [1, 2, 3, 5, 6, 1_000].map((attempt) => waitAfter(attempt, retryPolicy, 0)),
    [50, 100, 200, 800, 1_000, 1_000],
  );
  assert.is(waitAfter(1, retryPolicy, 1), 25);
});

test('tries passing failures for a day, then parks', () => {
  const later = new RetryLaterError('in trouble', 0);
  for (const error of [
    new UnavailableError('down'),
    new NoRespondersError('s'),
    new DeadlineError('s', 1),
    new RemoteError('trouble'),
    new MalformedMessageError('malformed answer on payments.charge'),
    later,
  ]) {
    assert.equal(afterFailure(error, on(500, RETRY_POLICY.giveUpMs - 1), RETRY_POLICY, 0), { waitMs: 15_000 });
    const given = afterFailure(error, on(500, RETRY_POLICY.giveUpMs), RETRY_POLICY, 0);
    assert.ok('cause' in given && given.cause.startsWith(error.name));
  }
});

test('anything else is tried a few times, then parked', () => {
  assert.equal(afterFailure(new TypeError('odd'), on(RETRY_POLICY.attempts - 1, 0), RETRY_POLICY, 0), {
    waitMs: 12_800,
  });
  assert.equal(afterFailure(new TypeError('odd'), on(RETRY_POLICY.attempts, 0), RETRY_POLICY, 0), {
    cause: 'TypeError: odd',
  });
  assert.equal(afterFailure('odd', on(RETRY_POLICY.attempts, 0), RETRY_POLICY, 0), { cause: 'odd' });
});

test('parks at once what is given up, and what can’t be decrypted', () => {
  assert.equal(afterFailure(new GiveUpError('too late'), on(1, 0), RETRY_POLICY, 0), { cause: 'too late' });
  assert.equal(afterFailure(new AlteredDataError('a message', undefined), on(1, 0), RETRY_POLICY, 0), {
    cause: "a message can't be decrypted: it was altered",
  });
});

test('retries after the requested pause, and not all at once', () => {
  const later = (afterMs: number, limited = false): RetryLaterError =>
    new RetryLaterError('limited', afterMs, { limited });
  assert.equal(afterFailure(later(60_000), on(1, 0), RETRY_POLICY, 0), { waitMs: 60_000 });
  assert.equal(afterFailure(later(60_000), on(1, 0), RETRY_POLICY, 1), { waitMs: 75_000 });
  assert.equal(afterFailure(later(1), on(5, 0), RETRY_POLICY, 0), { waitMs: 800 });
  assert.equal(afterFailure(later(1), on(500, RETRY_POLICY.giveUpMs), RETRY_POLICY, 0), {
    cause: 'RetryLaterError: limited',
  });
  assert.equal(afterFailure(later(60_000, true), on(500, RETRY_POLICY.giveUpMs), RETRY_POLICY, 0), { waitMs: 60_000 });
});

test('gives a wait up only where it may never end', () => {
  assert.equal(afterFailure(new NotYetError('the buyer', 7), on(500, RETRY_POLICY.giveUpMs), RETRY_POLICY, 0), {
    waitMs: 7,
  });
  const mayNeverCome = new NotYetError('the charge', 1_000, { mayNeverCome: true });
  assert.equal(
    [1, 9].map((attempt) => afterFailure(mayNeverCome, on(attempt, RETRY_POLICY.giveUpMs - 1), RETRY_POLICY, 0)),
    [{ waitMs: 1_000 }, { waitMs: 12_800 }],
  );
  assert.equal(afterFailure(mayNeverCome, on(9, RETRY_POLICY.giveUpMs), RETRY_POLICY, 0), { cause: 'the charge' });
});

test('an answer, or why there is none', () => {
  const reply = { outcome: 'charged' };
  assert.is(answered(reply), reply);
  assert.throws(
    () => answered({ outcome: 'impossible', cause: 'no such card' }),
    (error: unknown) => error instanceof GiveUpError && error.message === 'no such card',
  );
  assert.throws(
    () => answered({ outcome: 'retry_later', after_ms: 5, limited: true, cause: 'held' }),
    (error: unknown) => error instanceof RetryLaterError && error.limited && error.afterMs === 5,
  );
});

test('knows which requests were certainly not carried out', () => {
  assert.ok(neverStarted(new NoRespondersError('s')));
  assert.ok(neverStarted(new UnavailableError('down')));
  assert.ok(neverStarted(new RetryLaterError('', 0)));
  assert.not(neverStarted(new UnavailableError('down', { outcomeUnknown: true })));
  assert.not(neverStarted(new DeadlineError('s', 1)));
  assert.not(neverStarted(new RemoteError('trouble')));
});

test.run();
