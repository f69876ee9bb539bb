/** Pauses before a failed delivery is tried again (docs/api/webhooks.md#webhook-deliveries); `verdict.ts` decides. */
import { retryAfterMs } from '../lib/retryAfter.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface RetrySchedule {
  /** The first pause, ms. Each is four times the one before, less up to half of it at random. */
  readonly firstMs: number;
  readonly mostMs: number;
  /** A delivery that fails this long after its first attempt is abandoned, ms. */
  readonly giveUpMs: number;
  /** An endpoint of which nothing has succeeded for this long is disabled, ms. */
  readonly disableMs: number;
}

export const RETRY_SCHEDULE: RetrySchedule = {
  firstMs: 5_000,
  mostMs: 6 * HOUR_MS,
  giveUpMs: 3 * DAY_MS,
  disableMs: 5 * DAY_MS,
};

const FACTOR = 4;
/** The longest pause that a receiver may request. */
const MOST_REQUESTED_MS = DAY_MS;

/** Whether a wait goes on. One that is far longer than any may be was set by a clock that was ahead, and is over. */
export const isWaitedFor = (end: number, now: number): boolean => end > now && end - now < 2 * MOST_REQUESTED_MS;

/** @param tries number of failed attempts, from 1. @param chance random number from 0 to 1 */
export function pauseAfter(tries: number, { firstMs, mostMs }: RetrySchedule, chance: number): number {
  return Math.min(mostMs, firstMs * FACTOR ** Math.min(tries - 1, 20)) * (1 - chance / 2);
}

/** Milliseconds that a `Retry-After` header requests; `undefined`: it requests no pause. */
export function requestedPause(header: string | undefined, now: number): number | undefined {
  const ms = retryAfterMs(header, now, MOST_REQUESTED_MS);
  return ms === 0 ? undefined : ms;
}
