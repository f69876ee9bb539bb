/**
 * Throttling of guesses (docs/decisions.md#throttling). Unknown names count, too: otherwise the limit would reveal
 * which users exist.
 */
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { COUNTERS } from '../../domain/recordKeys.js';
import type { Records } from '../../ports/readStore.js';
import { HttpError } from '../pipeline/errors.js';
import { networkOf } from './address.js';
import { keyedGate } from '../limits/gate.js';
import { RecordsLimiter } from '../../runtime/limits/recordsLimiter.js';

const WINDOW_SECONDS = 900;
const LIMITS = { pair: 10, username: 100, address: 100 };
/** Queue for one username from one address. */
const PLACES = 50;

export interface Attempt {
  readonly address: string;
  /** Absent for a client. */
  readonly usernameHash?: string;
}

/** Counters shared by all processes. Every method throws UnavailableError without the records. */
export interface Throttle {
  /** @throws HttpError too_many_requests, with Retry-After, at a full counter */
  check(attempt: Attempt): Promise<void>;
  /**
   * `verify` calls `reserve` just before it checks the secret: from then on the attempt counts as a failure until it
   * succeeds, so that concurrent attempts can't exceed the limits. A success clears the username's counters and refunds
   * the address's charge. An attempt that throws does not count.
   * @throws HttpError too_many_requests
   */
  attempt(attempt: Attempt, verify: (reserve: () => Promise<void>) => Promise<boolean>): Promise<boolean>;
}

interface Counter {
  readonly limiter: RecordsLimiter;
  readonly key: string;
  /** Cleared by a success; other counters only lose this attempt's charge. */
  readonly cleared: boolean;
}

export function throttle(records: Records, hash: KeyedHash, now: () => number): Throttle {
  const limiter = (keyPrefix: string, points: number): RecordsLimiter =>
    new RecordsLimiter({ records, now, keyPrefix, points, duration: WINDOW_SECONDS });
  const limiters = {
    pair: limiter(COUNTERS.loginPair, LIMITS.pair),
    username: limiter(COUNTERS.loginUsername, LIMITS.username),
    address: limiter('throttle-address', LIMITS.address),
  };
  const turns = keyedGate(PLACES);

  const countersOf = ({ address, usernameHash }: Attempt): Counter[] => {
    const from = hash('address', networkOf(address));
    return [
      ...(usernameHash === undefined
        ? []
        : [
            { limiter: limiters.pair, key: `${usernameHash}.${from}`, cleared: true },
            { limiter: limiters.username, key: usernameHash, cleared: true },
          ]),
      { limiter: limiters.address, key: from, cleared: false },
    ];
  };
  const checkCounters = async (counters: readonly Counter[]): Promise<void> => {
    const counts = await Promise.all(counters.map(async (counter) => counter.limiter.get(counter.key)));
    const waits = counts.flatMap((count, index) =>
      count !== null && count.consumedPoints >= (counters[index]?.limiter.points ?? 0) ? [count.msBeforeNext] : [],
    );
    if (waits.length > 0) throw tooManyRequests(Math.max(...waits));
  };
  const giveBack = async (counters: readonly Counter[]): Promise<void> => {
    await Promise.all(counters.map(async (counter) => counter.limiter.reward(counter.key)));
  };

  return {
    async check(attempt) {
      await checkCounters(countersOf(attempt));
    },
    async attempt(attempt, verify) {
      const counters = countersOf(attempt);
      const charged: Counter[] = [];
      const reserve = async (): Promise<void> => {
        for (const counter of counters) {
          try {
            await counter.limiter.consume(counter.key);
          } catch (error) {
            throw error instanceof RateLimiterRes ? tooManyRequests(error.msBeforeNext) : error;
          }
          charged.push(counter);
        }
      };
      const run = async (): Promise<boolean> => {
        await checkCounters(counters);
        let succeeded: boolean;
        try {
          succeeded = await verify(reserve);
        } catch (error) {
          await giveBack(charged);
          throw error;
        }
        if (succeeded) {
          await giveBack(charged.filter((counter) => !counter.cleared));
          await Promise.all(counters.map(async (counter) => counter.cleared && counter.limiter.delete(counter.key)));
        }
        return succeeded;
      };
      // In turn: otherwise concurrent right passwords would count as failures for each other.
      return attempt.usernameHash === undefined ? run() : turns.run(counters[0]?.key ?? '', run);
    },
  };
}

export function tooManyRequests(waitMs: number): HttpError {
  return new HttpError('too_many_requests', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}
