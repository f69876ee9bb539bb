/**
 * Throttling of guesses (docs/api/tokens.md#throttling). Unknown names count, too: otherwise the limit would reveal
 * which users exist.
 */
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { COUNTERS, LOGIN_SEEN } from '../../domain/recordKeys.js';
import type { Records } from '../../ports/readStore.js';
import { HttpError } from '../pipeline/errors.js';
import { networkOf } from './address.js';
import { keyedGate } from '../pipeline/gate.js';
import { RecordsLimiter } from '../../runtime/limits/recordsLimiter.js';

const WINDOW_SECONDS = 900;
const LIMITS = { pair: 10, username: 100, address: 100, client: 10, clientAddress: 100 };
/** Longest queue for one username from one address, and for one client. */
export const PLACES = 50;
const DAY_MS = 86_400_000;
/** How long a user who logged in from an address is known there. */
const SEEN_MS = 90 * DAY_MS;

interface UserAttempt {
  readonly address: string;
  readonly usernameHash: string;
  /** The user who has the username at present; `undefined`: there is none. */
  readonly userId: string | undefined;
}

interface ClientAttempt {
  readonly clientId: string;
  readonly by: Claimant;
}

/** Claimant of a client's identity: the holder of a token of one of its sessions, else anybody at the address. */
export interface Claimant {
  readonly address: string;
  readonly sessionId?: string | undefined;
}

export type Attempt = UserAttempt | ClientAttempt;

/** Counters shared by all processes. Every method throws UnavailableError without the records. */
export interface Throttle {
  /**
   * `verify` calls `reserve` just before it checks the secret: from then on the attempt counts as a failure until it
   * succeeds, so that concurrent attempts can't exceed the limits. A success clears the username's counters and refunds
   * the other charges. An attempt that throws does not count.
   * @throws HttpError too_many_requests, with Retry-After, at a full counter or queue
   */
  attempt(attempt: Attempt, verify: (reserve: () => Promise<void>) => Promise<boolean>): Promise<boolean>;
}

interface Counter {
  readonly limiter: RecordsLimiter;
  readonly key: string;
  /** Cleared by a success; other counters only lose this attempt's charge. */
  readonly cleared?: true;
}

/** Counters of an attempt. Attempts with the same first counter are made in turn. */
interface Counted {
  readonly counters: readonly Counter[];
  /** Key of the record that this user has logged in from this address, and its value. */
  readonly seen?: readonly [key: string, value: Partial<LoginSeen>];
}

/** `user`: a username may be another user's later, who is not known at the address; an erasure finds it by that. */
interface LoginSeen {
  readonly user: string;
}

export function throttle(records: Records, hash: KeyedHash, now: () => number): Throttle {
  const limiter = (keyPrefix: string, points: number): RecordsLimiter =>
    new RecordsLimiter({ records, now, keyPrefix, points, duration: WINDOW_SECONDS });
  const limiters = {
    pair: limiter(COUNTERS.loginPair, LIMITS.pair),
    username: limiter(COUNTERS.loginUsername, LIMITS.username),
    address: limiter('throttle-address', LIMITS.address),
    client: limiter('throttle-client', LIMITS.client),
    clientAddress: limiter('throttle-client-address', LIMITS.clientAddress),
  };
  const turns = keyedGate(PLACES);

  const countedOfUser = async ({ address, usernameHash, userId }: UserAttempt): Promise<Counted> => {
    const from = hash('address', networkOf(address));
    const pair = `${usernameHash}.${from}`;
    const seen = [LOGIN_SEEN + pair, userId === undefined ? {} : { user: userId }] as const;
    const own: Counter = { limiter: limiters.pair, key: pair, cleared: true };
    // A user who has logged in from this address before is not kept out by failures of others or from elsewhere.
    const before = await records.get<Partial<LoginSeen>>(seen[0]);
    if (userId !== undefined && before?.value.user === userId) return { counters: [own], seen };
    return {
      counters: [
        own,
        { limiter: limiters.username, key: usernameHash, cleared: true },
        { limiter: limiters.address, key: from },
      ],
      seen,
    };
  };
  const countedOfClient = ({ clientId, by: { address, sessionId } }: ClientAttempt): Counted => {
    const client = hash('client', clientId);
    if (sessionId !== undefined) return { counters: [{ limiter: limiters.client, key: `${client}.${sessionId}` }] };
    const from = hash('address', networkOf(address));
    return {
      counters: [
        { limiter: limiters.client, key: `${client}.${from}` },
        { limiter: limiters.clientAddress, key: from },
      ],
    };
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
    async attempt(attempt, verify) {
      const { counters, seen } = 'usernameHash' in attempt ? await countedOfUser(attempt) : countedOfClient(attempt);
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
      // Attempts are made in turn: otherwise concurrent right secrets would count as failures for each other.
      return turns.run(counters[0]?.key ?? '', async () => {
        await checkCounters(counters);
        let succeeded: boolean;
        try {
          succeeded = await verify(reserve);
        } catch (error) {
          await giveBack(charged);
          throw error;
        }
        if (!succeeded) return false;
        await giveBack(charged.filter((counter) => counter.cleared !== true));
        await Promise.all(
          counters.map(async (counter) => counter.cleared === true && counter.limiter.delete(counter.key)),
        );
        if (seen !== undefined) await records.put(...seen, { expiresAt: now() + SEEN_MS });
        return true;
      });
    },
  };
}

export function tooManyRequests(waitMs: number): HttpError {
  return new HttpError('too_many_requests', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}
