/**
 * Limits against SMS pumping, counted over all processes. A purchase counts once, however many receivers it has.
 * Messages over a limit wait.
 */
import { LRUCache } from 'lru-cache';
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { COUNTERS, smsMarker } from '../../domain/recordKeys.js';
import { RecordsLimiter } from '../../runtime/limits/recordsLimiter.js';
import type { Records } from '../../ports/readStore.js';
import { RetryLaterError } from '../../messages/workerFailure.js';

/** Most purchases for one number and for one buyer within `windowMs` milliseconds. */
export interface SmsLimitOptions {
  readonly perNumber?: number;
  readonly perBuyer?: number;
  readonly windowMs?: number;
}

/** A purchase that sends an SMS to a number. Personal: `number`. */
interface SmsUnit {
  readonly transactionId: string;
  /** Absent for a reminder: its buyer causes none, and a reminder that waits for long is never sent. */
  readonly buyerId?: string;
  readonly number: string;
}

export interface SmsLimits {
  /** @throws RetryLaterError (limited) with the time to wait; UnavailableError */
  admit(unit: SmsUnit): Promise<void>;
}

const PER_NUMBER = 10;
const PER_BUYER = 60;
const WINDOW_MS = 3_600_000;
const ADMITTED_MS = 48 * 3_600_000;
const REMEMBERED = 10_000;

export function smsLimits(
  records: Records,
  hash: KeyedHash,
  now: () => number,
  options: SmsLimitOptions = {},
): SmsLimits {
  const { perNumber = PER_NUMBER, perBuyer = PER_BUYER, windowMs = WINDOW_MS } = options;
  const limiter = (keyPrefix: string, points: number): RecordsLimiter =>
    new RecordsLimiter({ records, now, keyPrefix, points, duration: windowMs / 1000 });
  const counters = {
    number: limiter(COUNTERS.smsNumber, perNumber),
    buyer: limiter(COUNTERS.smsBuyer, perBuyer),
  };
  // Receivers of one purchase are notified concurrently: the first is counted, the others wait for its result.
  const admissions = new LRUCache<string, Promise<void>>({ max: REMEMBERED });

  const count = async (kind: keyof typeof counters, key: string, marker: string): Promise<void> => {
    if ((await records.get(marker)) !== undefined) return;
    try {
      await counters[kind].consume(key);
    } catch (error) {
      if (error instanceof RateLimiterRes)
        throw new RetryLaterError(
          `held back: too many messages ${kind === 'number' ? 'to this number' : 'by this buyer'}`,
          error.msBeforeNext,
          { limited: true },
        );
      throw error;
    }
    const first = await records.put(marker, true, { expected: 0, expiresAt: now() + ADMITTED_MS });
    // Another process has counted this purchase concurrently, so this count is undone.
    if (first === undefined) await counters[kind].reward(key);
  };

  const admit = (kind: keyof typeof counters, key: string, transactionId: string): Promise<void> => {
    const marker = smsMarker(kind, key) + transactionId;
    const known = admissions.get(marker);
    if (known !== undefined) return known;
    const own = count(kind, key, marker);
    admissions.set(marker, own);
    own.catch(() => admissions.delete(marker));
    return own;
  };

  return {
    async admit({ transactionId, buyerId, number }) {
      if (buyerId !== undefined) await admit('buyer', buyerId, transactionId);
      await admit('number', hash('phone', number), transactionId);
    },
  };
}
