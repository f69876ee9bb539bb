/** A store for rate-limiter-flexible on the records, shared by all processes. */
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import RateLimiterStoreAbstract from 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { CLOCK_SLACK_MS } from '../../lib/clock.js';

/** A lost compare-and-set means that another count was stored; this many in a row are a fault of the store. */
const MAX_TURNS = 1_000;

export interface Count {
  readonly points: number;
  /** End of the window, in milliseconds since the epoch. */
  readonly expire: number;
}

/**
 * A limiter whose window starts with the first point. Compare-and-set loses no count.
 * @throws UnavailableError from every method; `consume` throws RateLimiterRes when no points are left
 */
export class RecordsLimiter extends RateLimiterStoreAbstract<Count> {
  readonly #records: Records;
  readonly #now: () => number;

  /** `duration` in seconds; `now` in milliseconds. */
  constructor(options: { records: Records; now: () => number; keyPrefix: string; points: number; duration: number }) {
    super({ keyPrefix: options.keyPrefix, points: options.points, duration: options.duration });
    this.#records = options.records;
    this.#now = options.now;
  }

  override async _upsert(key: string, points: number, msDuration: number, forceExpire: boolean): Promise<Count> {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const record = await this.#records.get<Count>(key);
      const old = record === undefined || forceExpire ? undefined : this.#open(record.value);
      const next = {
        points: Math.max(0, (old?.points ?? 0) + points),
        expire: old?.expire ?? this.#now() + msDuration,
      };
      // Points returned after their window are ignored.
      if (old === undefined && points < 0) return next;
      const version = await this.#records.put(key, next, { expected: record?.version ?? 0, expiresAt: next.expire });
      if (version !== undefined) return next;
    }
    throw new UnavailableError('a counter could not be stored');
  }

  override async _get(key: string): Promise<Count | null> {
    const record = await this.#records.get<Count>(key);
    const count = record === undefined ? undefined : this.#open(record.value);
    // The shortened window is stored, so that the next read does not grant another one.
    if (record !== undefined && count !== undefined && count !== record.value)
      await this.#records.put(key, count, { expected: record.version, expiresAt: count.expire });
    return count ?? null;
  }

  /**
   * The count, if its window is open. If a clock was set back, and more than a window is left, one more window is
   * granted.
   */
  #open(count: Count): Count | undefined {
    const left = count.expire - this.#now();
    if (left <= 0) return undefined;
    const window = this.duration * 1_000;
    return left <= window + CLOCK_SLACK_MS ? count : { points: count.points, expire: this.#now() + window };
  }

  override async _delete(key: string): Promise<boolean> {
    return this.#records.delete(key);
  }

  override _getRateLimiterRes(_key: string, changedPoints: number, count: Count): RateLimiterRes {
    return new RateLimiterRes(
      Math.max(0, this.points - count.points),
      Math.max(0, count.expire - this.#now()),
      count.points,
      count.points === changedPoints,
    );
  }
}
