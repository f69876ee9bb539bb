/**
 * Slows guessing down (docs/decisions.md#throttling). Within 15 minutes: 10 failures in a row for one username from one
 * address, 100 for one username, 100 from one address. Unknown names count like others, so that nothing tells whether a
 * user exists.
 */
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Records } from '../../ports/readStore.js';
import { HttpError } from '../pipeline/errors.js';
import { networkOf } from './address.js';
import { keyedGate } from './gate.js';
import { RecordsLimiter } from '../../runtime/limits/recordsLimiter.js';

const WINDOW_SECONDS = 900;
const LIMITS = { pair: 10, username: 100, address: 100 };
/** How many attempts for one username from one address wait for each other at most. */
const PLACES = 50;

export interface Attempt {
  readonly address: string;
  /** HMAC of the username; absent for a client. */
  readonly usernameHash?: string;
}

/** The counters of all processes. Every method throws UnavailableError where the records can't be reached. */
export interface Throttle {
  /** @throws HttpError too_many_requests, with Retry-After, where one of the attempt's counters is full */
  check(attempt: Attempt): Promise<void>;
  /**
   * Runs one attempt; returns what `verify` said. `verify` calls `reserve` just before it looks at the secret: from
   * then on the attempt counts as a failure until it has succeeded, so that concurrent attempts can't outrun the
   * counters. A success clears the username's counters and takes back the address's charge. An attempt that throws is
   * not counted.
   * @throws HttpError too_many_requests
   */
  attempt(attempt: Attempt, verify: (reserve: () => Promise<void>) => Promise<boolean>): Promise<boolean>;
}

interface Counter {
  readonly limiter: RecordsLimiter;
  readonly key: string;
  /** A success clears it; otherwise a success only takes back its own charge. */
  readonly cleared: boolean;
}

/** `now`: milliseconds. */
export function throttle(records: Records, hash: KeyedHash, now: () => number): Throttle {
  const limiter = (name: keyof typeof LIMITS): RecordsLimiter =>
    new RecordsLimiter({ records, now, keyPrefix: `throttle-${name}`, points: LIMITS[name], duration: WINDOW_SECONDS });
  const limiters = { pair: limiter('pair'), username: limiter('username'), address: limiter('address') };
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
    if (waits.length > 0) throw refused(Math.max(...waits));
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
            throw error instanceof RateLimiterRes ? refused(error.msBeforeNext) : error;
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
      // One after another: right passwords sent at once would count as failures for each other.
      return attempt.usernameHash === undefined ? run() : turns.run(counters[0]?.key ?? '', run);
    },
  };
}

function refused(waitMs: number): HttpError {
  return new HttpError('too_many_requests', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}
