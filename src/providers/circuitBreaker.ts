/** A circuit breaker before one provider, which also honours its `Retry-After`. One a provider and process. */
import {
  BrokenCircuitError,
  circuitBreaker,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  ExponentialBackoff,
  halfJitterGenerator,
  handleWhen,
} from 'cockatiel';
import type { Logger } from 'pino';
import { CLOCK_SLACK_MS } from '../lib/clock.js';
import { inSpan } from '../tracing/spans.js';
import { RetryLaterError } from '../messages/workerFailure.js';
import { ProviderError } from './providerErrors.js';

/** When the breaker opens, and for how long. */
export interface CircuitBreakerOptions {
  /** Failures in a row that open the breaker. */
  readonly failures?: number;
  /**
   * How long it is open at first, milliseconds, less up to half by chance, so that processes don't all ask at once. Twice
   * as long each time the one request that it then lets through fails, 30 s at most.
   */
  readonly openMs?: number;
  readonly watch?: ProviderCallWatch;
}

/** `half_open`: one request is let through, to see whether the provider works again. */
export type BreakerState = 'closed' | 'open' | 'half_open';

/**
 * `answered`: a refusal, too; `error`: the provider failed; `retry_later`: it asks for a pause; `not_called`: the breaker
 * is open, or the pause not over.
 */
export type CallOutcome = 'answered' | 'error' | 'retry_later' | 'not_called';

/** Observes every call to a provider, for metrics. */
export interface ProviderCallWatch {
  /** A provider's circuit breaker was made. `state`: its present state. */
  opened(provider: string, state: () => BreakerState): void;
  called(provider: string, outcome: CallOutcome, milliseconds: number): void;
}

export interface CircuitBreaker {
  /**
   * Makes the call, or throws RetryLaterError without calling. A ProviderError of the call counts as a failure; a
   * RetryLaterError makes all calls wait.
   */
  run<T>(call: () => Promise<T>): Promise<T>;
}

const FAILURES = 10;
const OPEN_MS = 1_000;
const OPEN_AT_MOST_MS = 30_000;

/** `now`: milliseconds since the epoch. */
export function openCircuitBreaker(
  provider: string,
  logger: Logger,
  now: () => number,
  { failures = FAILURES, openMs = OPEN_MS, watch }: CircuitBreakerOptions = {},
): CircuitBreaker {
  let breaker = newBreaker();
  /** When it opened last, by the clock that the breaker uses and by the monotonic one, milliseconds. */
  let openedAt = { clock: 0, steady: 0 };
  let pausedUntil = 0;
  /** The last pause, milliseconds. */
  let pauseMs = 0;
  watch?.opened(provider, () => STATES[breaker.state]);

  function newBreaker(): CircuitBreakerPolicy {
    const made = circuitBreaker(
      handleWhen((error) => error instanceof ProviderError),
      {
        halfOpenAfter: new ExponentialBackoff({
          initialDelay: openMs,
          maxDelay: Math.max(openMs, OPEN_AT_MOST_MS),
          generator: halfJitterGenerator,
        }),
        breaker: new ConsecutiveBreaker(failures),
      },
    );
    made.onBreak(() => {
      openedAt = { clock: Date.now(), steady: performance.now() };
      logger.error({ provider }, 'a provider fails: it is not called for a while');
    });
    made.onReset(() => logger.info({ provider }, 'a provider works again'));
    return made;
  }

  /** After the clock was set back, an open breaker would wait for the old time to come again. */
  function renewIfSetBack(): void {
    if (
      breaker.state !== CircuitState.Open ||
      performance.now() - openedAt.steady - (Date.now() - openedAt.clock) <= CLOCK_SLACK_MS
    )
      return;
    breaker = newBreaker();
    logger.warn({ provider }, 'the clock was set back: a provider is called again');
  }

  const throughBreaker = async <T>(call: () => Promise<T>): Promise<T> => {
    // More is left than there ever was: the clock was set back.
    if (pausedUntil - now() > pauseMs) pausedUntil = now() + pauseMs;
    const leftMs = pausedUntil - now();
    if (leftMs > 0) throw new NotCalledError(`${provider} asks for a pause`, leftMs);
    renewIfSetBack();
    try {
      return await breaker.execute(call);
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
      const start = performance.now();
      const note = (outcome: CallOutcome): void => watch?.called(provider, outcome, performance.now() - start);
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

class NotCalledError extends RetryLaterError {}

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.Open]: 'open',
  [CircuitState.HalfOpen]: 'half_open',
  // Only ever by hand.
  [CircuitState.Isolated]: 'open',
};

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof NotCalledError) return 'not_called';
  if (error instanceof RetryLaterError) return 'retry_later';
  return error instanceof ProviderError ? 'error' : 'answered';
}
