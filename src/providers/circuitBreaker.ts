/**
 * Between us and one provider: a breaker, so that a provider in trouble is left alone and nobody waits for it; and its
 * own word for how long it wants to be left alone (`Retry-After`). One a provider and process.
 */
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
   * How long it is open at first, milliseconds: this at most and half of it at least, so that not all processes ask
   * again at once. Twice as long each time that the one request it then lets through fails too, 30 s at most.
   */
  readonly openMs?: number;
  readonly watch?: ProviderCallWatch;
}

/** How a provider's breaker stands: `half_open` lets one request through, to see whether the provider works again. */
export type BreakerState = 'closed' | 'open' | 'half_open';

/**
 * What came of a call: `answered`, be it a refusal; `trouble`: the provider's; `not_now`: it wants to be left alone;
 * `kept_back`: it was not called, since it wants or is to be left alone.
 */
export type CallOutcome = 'answered' | 'trouble' | 'not_now' | 'kept_back';

/** Told of every call to a provider, for metrics. */
export interface ProviderCallWatch {
  /** A circuit breaker of this provider was opened. `state`: how its breaker stands, whenever it is asked. */
  opened(provider: string, state: () => BreakerState): void;
  called(provider: string, outcome: CallOutcome, milliseconds: number): void;
}

/** Calls one provider. */
export interface CircuitBreaker {
  /**
   * Makes the call, unless the provider is to be left alone.
   * @throws RetryLaterError without calling; else whatever the call throws. ProviderError counts against the provider,
   * RetryLaterError makes everybody wait.
   */
  run<T>(call: () => Promise<T>): Promise<T>;
}

const FAILURES = 10;
const OPEN_MS = 1_000;
const OPEN_AT_MOST_MS = 30_000;

/** The circuit breaker of a provider. `now`: milliseconds since the epoch. */
export function openCircuitBreaker(
  provider: string,
  logger: Logger,
  now: () => number,
  { failures = FAILURES, openMs = OPEN_MS, watch }: CircuitBreakerOptions = {},
): CircuitBreaker {
  let breaker = newBreaker();
  /** When it opened last, by the clock, as the breaker counts, and by one that nobody sets, milliseconds. */
  let openedAt = { clock: 0, steady: 0 };
  let quietUntil = 0;
  /** What it last wanted, milliseconds. */
  let quietFor = 0;
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
      logger.error({ provider }, 'a provider is in trouble: it is left alone for a while');
    });
    made.onReset(() => logger.info({ provider }, 'a provider works again'));
    return made;
  }

  /**
   * An open breaker would wait for the time of before to come again. The new one is closed: a provider that is still in
   * trouble opens it anew.
   */
  function renewIfSetBack(): void {
    if (
      breaker.state !== CircuitState.Open ||
      performance.now() - openedAt.steady - (Date.now() - openedAt.clock) <= CLOCK_SLACK_MS
    )
      return;
    breaker = newBreaker();
    logger.warn({ provider }, 'the clock was set back: a provider that was to be left alone is asked anew');
  }

  const throughBreaker = async <T>(call: () => Promise<T>): Promise<T> => {
    // More is left than there ever was: the clock was set back.
    if (quietUntil - now() > quietFor) quietUntil = now() + quietFor;
    const quietMs = quietUntil - now();
    if (quietMs > 0) throw new KeptBackError(`${provider} wants to be left alone for a while`, quietMs);
    renewIfSetBack();
    try {
      return await breaker.execute(call);
    } catch (error) {
      if (error instanceof BrokenCircuitError)
        throw new KeptBackError(`${provider} is in trouble and left alone for a while`, openMs);
      if (error instanceof RetryLaterError && now() + error.afterMs > quietUntil) {
        quietFor = error.afterMs;
        quietUntil = now() + quietFor;
      }
      throw error;
    }
  };

  return {
    async run(call) {
      const began = performance.now();
      const told = (outcome: CallOutcome): void => watch?.called(provider, outcome, performance.now() - began);
      try {
        const answer = await inSpan(
          () => ({ name: `provider ${provider}`, kind: 'client', attributes: { 'gift.provider': provider } }),
          () => throughBreaker(call),
        );
        told('answered');
        return answer;
      } catch (error) {
        told(outcomeOf(error));
        throw error;
      }
    },
  };
}

/** The provider was not called. */
class KeptBackError extends RetryLaterError {}

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.Open]: 'open',
  [CircuitState.HalfOpen]: 'half_open',
  // Only ever by hand.
  [CircuitState.Isolated]: 'open',
};

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof KeptBackError) return 'kept_back';
  if (error instanceof RetryLaterError) return 'not_now';
  // A refusal is an answer too.
  return error instanceof ProviderError ? 'trouble' : 'answered';
}
