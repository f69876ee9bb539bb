import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { enterWorld, REAL_WORLD } from '../../src/lib/world.js';
import { countProviderCalls } from '../../src/metrics/providers.js';
import { openCircuitBreaker } from '../../src/providers/circuitBreaker.js';
import { RetryLaterError } from '../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../src/providers/providerErrors.js';
import { withClockAhead } from '../support/faults/clockAhead.js';
import { failureOf } from '../support/engines/eventStoreEvents.js';
import { exposed } from '../support/service/exposed.js';

const test = suite('circuit breaker');
const SILENT = pino({ level: 'silent' });
/** So long that the test never outlasts it. */
const OPEN_MS = 1_200_000;

test('counts calls by outcome, and opens, half-opens and closes the breaker', () =>
  withClockAhead(async (advance) => {
    const { show, values } = exposed();
    const watch = countProviderCalls(show);
    const { run } = openCircuitBreaker('stripe', SILENT, Date.now, { failures: 2, openMs: OPEN_MS, watch });
    const fails = (error: Error) => failureOf(run(async () => Promise.reject(error)));
    const state = async (): Promise<string | undefined> => {
      const found = await values();
      const on = ['closed', 'half_open', 'open'].filter(
        (one) => found.get(`gift_provider_breaker_state{provider="stripe",state="${one}"}`) === 1,
      );
      assert.is(on.length, 1);
      return on[0];
    };
    assert.is(await state(), 'closed');
    assert.is(await run(async () => 7), 7);
    await fails(new RefusedError('no'));
    await fails(new ProviderError('down', { outcomeUnknown: false }));
    await fails(new ProviderError('down', { outcomeUnknown: true }));
    assert.is(await state(), 'open');
    let called = false;
    const keptBack = await failureOf(run(async () => (called = true)));
    assert.instance(keptBack, RetryLaterError);
    assert.is((keptBack as Error).name, 'RetryLaterError');
    assert.is(called, false);
    advance(OPEN_MS / 4);
    assert.instance(await failureOf(run(async () => (called = true))), RetryLaterError);
    assert.is(called, false, 'half of the time at least');
    advance((OPEN_MS * 3) / 4);
    const trial = run(async () => {
      assert.is(await state(), 'half_open');
      return true;
    });
    assert.is(await trial, true);
    assert.is(await state(), 'closed');
    await fails(new RetryLaterError('limited', 1_000));
    assert.match(((await failureOf(run(async () => 1))) as Error).message, /asks for a pause/);
    const found = await values();
    for (const [outcome, count] of [
      ['answered', 3],
      ['error', 2],
      ['retry_later', 1],
      ['not_called', 3],
    ] as const) {
      assert.is(found.get(`gift_provider_calls_total{provider="stripe",outcome="${outcome}"}`), count, outcome);
    }
    assert.is(found.get('gift_provider_call_duration_seconds_count{provider="stripe"}'), 6);
  }));

test('shows no breaker as open that nobody has called for a minute, since others may have done what waited', () =>
  withClockAhead(async (putForward) => {
    let ahead = 0;
    const former = enterWorld({ ...REAL_WORLD, ticks: () => REAL_WORLD.ticks() + ahead });
    const advance = (ms: number): void => {
      putForward(ms);
      ahead += ms;
    };
    const { show, values } = exposed();
    const watch = countProviderCalls(show);
    const { run } = openCircuitBreaker('fcm', SILENT, Date.now, { failures: 1, openMs: OPEN_MS, watch });
    const isOpen = async (): Promise<boolean> =>
      (await values()).get('gift_provider_breaker_state{provider="fcm",state="open"}') === 1;
    try {
      await failureOf(run(async () => Promise.reject(new ProviderError('down', { outcomeUnknown: false }))));
      assert.is(await isOpen(), true);
      for (let n = 0; n < 3; n++) {
        advance(30_000);
        assert.instance(await failureOf(run(async () => 1)), RetryLaterError, 'work waits for it');
      }
      assert.is(await isOpen(), true);
      advance(61_000);
      assert.is(await isOpen(), false);
      assert.is((await values()).get('gift_provider_breaker_state{provider="fcm",state="closed"}'), 1);
      await failureOf(run(async () => 1));
      assert.is(await isOpen(), true, 'work waits for it again');
    } finally {
      enterWorld(former);
    }
  }));

test('opens after failures in a row only: an answer that refuses ends a row, also the one that closes it', () =>
  withClockAhead(async (advance) => {
    const { run } = openCircuitBreaker('stripe', SILENT, Date.now, { failures: 2, openMs: OPEN_MS });
    const outcomeOf = async (error: Error): Promise<unknown> => failureOf(run(async () => Promise.reject(error)));
    const failure = new ProviderError('down', { outcomeUnknown: true });
    const refusal = new RefusedError('no');
    for (const error of [failure, refusal, failure, refusal, failure, failure])
      assert.is(await outcomeOf(error), error);
    assert.instance(await outcomeOf(failure), RetryLaterError);
    advance(OPEN_MS);
    for (const error of [refusal, failure, refusal]) assert.is(await outcomeOf(error), error);
  }));

test('keeps the longest pause that a provider asks for', async () => {
  const { run } = openCircuitBreaker('stripe', SILENT, Date.now);
  await Promise.all(
    [60_000, 1].map((afterMs) => failureOf(run(async () => Promise.reject(new RetryLaterError('limited', afterMs))))),
  );
  const left = await failureOf(run(async () => 1));
  assert.ok(left instanceof RetryLaterError && left.afterMs > 50_000, String(left));
});

test('lengthens no pause when the clock is set back', () =>
  withClockAhead(async (advance) => {
    const { run } = openCircuitBreaker('stripe', SILENT, Date.now, { failures: 1, openMs: OPEN_MS });
    await failureOf(run(async () => Promise.reject(new ProviderError('down', { outcomeUnknown: false }))));
    assert.instance(await failureOf(run(async () => 1)), RetryLaterError);
    advance(-86_400_000);
    assert.is(await run(async () => 1), 1);

    await failureOf(run(async () => Promise.reject(new RetryLaterError('limited', 20_000))));
    advance(-86_400_000);
    const left = await failureOf(run(async () => 1));
    assert.ok(left instanceof RetryLaterError && left.afterMs <= 20_000, String((left as RetryLaterError).afterMs));
    advance(20_001);
    assert.is(await run(async () => 1), 1);
  }));

test.run();
