/**
 * Between us and one provider: a breaker, so that a provider in trouble is left alone and nobody waits for it; and its own word for how long
 * it wants to be left alone (`Retry-After`). One a provider and process.
 */
import { BrokenCircuitError, circuitBreaker, ConsecutiveBreaker, ExponentialBackoff, handleWhen } from 'cockatiel';
import type { Logger } from 'pino';
import { NotNowError, TroubleError } from './trouble.js';

/** How a guard decides. */
export interface GuardOptions {
  /** Failures in a row that open the breaker. */
  readonly failures?: number;
  /** How long it is open at first, milliseconds; longer each time that the one request it then lets through fails too. */
  readonly openMs?: number;
}

/** Calls one provider. */
export interface Guard {
  /**
   * Makes the call, unless the provider is to be left alone.
   * @throws NotNowError without calling; else whatever the call throws. TroubleError counts against the provider, NotNowError makes everybody wait.
   */
  run<T>(call: () => Promise<T>): Promise<T>;
}

const FAILURES = 10;
const OPEN_MS = 1_000;
const OPEN_AT_MOST_MS = 30_000;

/** The guard of a provider. `now`: milliseconds since the epoch. */
export function guard(provider: string, logger: Logger, now: () => number, { failures = FAILURES, openMs = OPEN_MS }: GuardOptions = {}): Guard {
  const breaker = circuitBreaker(
    handleWhen((error) => error instanceof TroubleError),
    { halfOpenAfter: new ExponentialBackoff({ initialDelay: openMs, maxDelay: Math.max(openMs, OPEN_AT_MOST_MS) }), breaker: new ConsecutiveBreaker(failures) },
  );
  breaker.onBreak(() => logger.error({ provider }, 'a provider is in trouble: it is left alone for a while'));
  breaker.onReset(() => logger.info({ provider }, 'a provider works again'));
  let quietUntil = 0;

  return {
    async run(call) {
      const quietMs = quietUntil - now();
      if (quietMs > 0) throw new NotNowError(`${provider} wants to be left alone for a while`, quietMs);
      try {
        return await breaker.execute(call);
      } catch (error) {
        if (error instanceof BrokenCircuitError) throw new NotNowError(`${provider} is in trouble and left alone for a while`, openMs);
        if (error instanceof NotNowError) quietUntil = Math.max(quietUntil, now() + error.afterMs);
        throw error;
      }
    },
  };
}
