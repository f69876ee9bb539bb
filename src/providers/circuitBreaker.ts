/** A circuit breaker, one per provider and process. It also honours the provider's `Retry-After`. */
import {
  BrokenCircuitError,
  circuitBreaker,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
} from 'cockatiel';
import type { Logger } from 'pino';
import { backoff } from '../lib/backoff.js';
import { CLOCK_SLACK_MS } from '../lib/clock.js';
import { systemMs, ticks } from '../lib/world.js';
import { inSpan } from '../tracing/spans.js';
import { RetryLaterError } from '../messages/workerFailure.js';
import { ProviderError } from './providerErrors.js';

export interface CircuitBreakerOptions {
  /** Failures in a row that open the breaker. */
  readonly failures?: number;
  /**
   * First opening, milliseconds, less up to half at random, so that processes don't all call at once. It doubles each
   * time the one request that is then let through fails, up to 30 s.
   */
  readonly openMs?: number;
  readonly watch?: ProviderCallWatch;
}

export interface RealProviderDeps {
  readonly logger: Logger;
  /** Present time, milliseconds since the epoch. */
  readonly now: () => number;
  /** Longest time of one request; default the provider's `TIMEOUT_MS`. */
  readonly timeoutMs?: number;
  readonly circuitBreaker?: CircuitBreakerOptions;
}

/**
 * `half_open`: one request is let through as a test. An open breaker that no work has asked for a minute shows as
 * `closed`: it lets the next request through, and other processes may have done what waited.
 */
export type BreakerState = 'closed' | 'open' | 'half_open';

/**
 * `answered`: the provider answered, perhaps with a refusal; `error`: it failed; `not_called`: the breaker is open, or
 * the provider's pause is not over.
 */
type CallOutcome = 'answered' | 'error' | 'retry_later' | 'not_called';

export interface ProviderCallWatch {
  opened(provider: string, state: () => BreakerState): void;
  called(provider: string, outcome: CallOutcome, milliseconds: number): void;
}

interface CircuitBreaker {
  /**
   * @throws RetryLaterError without a call, while the breaker is open or the provider asks for a pause. ProviderErrors
   * count as failures; a RetryLaterError makes all calls wait.
   */
  run<T>(call: () => Promise<T>): Promise<T>;
}

const FAILURES = 10;
const OPEN_MS = 1_000;
const OPEN_AT_MOST_MS = 30_000;
/** Milliseconds without a call after which nothing waits for the provider: what waits calls again within 15 s. */
const IDLE_MS = 60_000;

export function openCircuitBreaker(
  provider: string,
  logger: Logger,
  now: () => number,
  { failures = FAILURES, openMs = OPEN_MS, watch }: CircuitBreakerOptions = {},
): CircuitBreaker {
  let breaker = newBreaker();
  /** Time of the last opening by the breaker's clock and by the monotonic one, milliseconds. */
  let openedAt = { clock: 0, steady: 0 };
  let pausedUntil = 0;
  let pauseMs = 0;
  let lastCallAt = ticks();
  watch?.opened(provider, () => (ticks() - lastCallAt > IDLE_MS ? 'closed' : STATES[breaker.state]));

  function newBreaker(): CircuitBreakerPolicy {
    const made = circuitBreaker(
      handleWhen((error) => error instanceof ProviderError),
      {
        halfOpenAfter: backoff(openMs, Math.max(openMs, OPEN_AT_MOST_MS)),
        breaker: new ConsecutiveBreaker(failures),
      },
    );
    made.onBreak(() => {
      openedAt = { clock: systemMs(), steady: ticks() };
      logger.error({ provider }, 'a provider fails: it is not called for a while');
    });
    made.onReset(() => logger.info({ provider }, 'a provider works again'));
    return made;
  }

  /** Renews the breaker after the clock was set back: an open one would wait for the old time to come again. */
  function renewIfSetBack(): void {
    if (
      breaker.state !== CircuitState.Open ||
      ticks() - openedAt.steady - (systemMs() - openedAt.clock) <= CLOCK_SLACK_MS
    )
      return;
    breaker = newBreaker();
    logger.warn({ provider }, 'the clock was set back: a provider is called again');
  }

  const throughBreaker = async <T>(call: () => Promise<T>): Promise<T> => {
    // Where more is left than the whole pause, the clock was set back.
    if (pausedUntil - now() > pauseMs) pausedUntil = now() + pauseMs;
    const leftMs = pausedUntil - now();
    if (leftMs > 0) throw new NotCalledError(`${provider} asks for a pause`, leftMs);
    renewIfSetBack();
    try {
      // The breaker would count failures on both sides of a refusal as a row: only an answer that is returned ends one.
      const answer = await breaker.execute(async () => call().then(returned, refusalOrThrow));
      return answer();
    } catch (error) {
      if (error instanceof BrokenCircuitError)
        throw new NotCalledError(`${provider} fails and is not called for a while`, openMs);
      if (error instanceof RetryLaterError && now() + error.afterMs > pausedUntil) {
        pauseMs = error.afterMs;
        pausedUntil = now() + pauseMs;
      }
      throw error;
    }
  };

  return {
    async run(call) {
      const start = ticks();
      lastCallAt = start;
      const note = (outcome: CallOutcome): void => watch?.called(provider, outcome, ticks() - start);
      try {
        const answer = await inSpan(
          () => ({ name: `provider ${provider}`, kind: 'client', attributes: { 'gift.provider': provider } }),
          () => throughBreaker(call),
        );
        note('answered');
        return answer;
      } catch (error) {
        note(outcomeOf(error));
        throw error;
      }
    },
  };
}

const returned =
  <T>(value: T) =>
  (): T =>
    value;

/** A refusal, which shows that the provider answers, as a function that throws it. @throws all other errors */
function refusalOrThrow(error: unknown): () => never {
  if (error instanceof ProviderError || error instanceof RetryLaterError) throw error;
  return () => {
    throw error;
  };
}

class NotCalledError extends RetryLaterError {}

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.Open]: 'open',
  [CircuitState.HalfOpen]: 'half_open',
  // A breaker is isolated only by an explicit call, which this service never makes.
  [CircuitState.Isolated]: 'open',
};

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof NotCalledError) return 'not_called';
  if (error instanceof RetryLaterError) return 'retry_later';
  return error instanceof ProviderError ? 'error' : 'answered';
}
