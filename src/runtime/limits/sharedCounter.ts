/**
 * A counter of one limit, which all processes share without a record per count: each counts by itself, and
 * `countExchange.ts` tells the others (docs/limits.md#counted-together). rate-limiter-flexible would write a record per
 * count, and in memory it has a timer for every key and no bound.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';

export interface Quota {
  readonly name: string;
  /** Number of counts allowed within a window. */
  readonly limit: number;
  readonly windowSeconds: number;
}

export interface QuotaStatus {
  /** Number of counts left in the window; 0: the limit is reached. */
  readonly left: number;
  /** Seconds until the window ends, at least 1. */
  readonly seconds: number;
}

/** The counts of one key in one process. */
export type ExchangedCount = readonly [key: string, windowEndsMs: number, count: number];

/**
 * Most keys in memory, and most keys sent to other processes. Beyond these the least recently counted keys in memory
 * are dropped, and the sent keys with the lowest counts.
 */
const MOST_KEYS = { counted: 50_000, exchanged: 2_000 };

/** Share of the limit from which a key's count is sent to other processes; lower counts are noise. */
const EXCHANGED_FROM = 1 / 20;

interface Count {
  /** Offset that spreads the ends of windows, so that limited callers do not all return at once. */
  readonly phaseMs: number;
  windowEndsMs: number;
  own: number;
  exchanged: number;
}

interface OthersCount {
  windowEndsMs: number;
  count: number;
}

export class SharedCounter {
  readonly quota: Quota;
  readonly #windowMs: number;
  readonly #exchangedFrom: number;
  readonly #now: () => number;
  readonly #counts = new LRUCache<string, Count>(atMost(MOST_KEYS.counted));
  readonly #notable = new Map<string, Count>();
  #others: ReadonlyMap<string, OthersCount> = new Map();
  /** Latest end of a window whose key has reached the limit, in milliseconds since the epoch. */
  #fullUntilMs = 0;
  /** Called when a key's count has grown so much that other processes should be notified; once until they are. */
  onGrowth: () => void = () => undefined;

  /** `now`: milliseconds since the epoch. */
  constructor(quota: Quota, now: () => number) {
    this.quota = quota;
    this.#windowMs = quota.windowSeconds * 1_000;
    this.#exchangedFrom = Math.max(1, Math.floor(quota.limit * EXCHANGED_FROM));
    this.#now = now;
  }

  /** Whether no key has reached the limit. This check is cheap; a check of a single key is not. */
  get hasRoomForAll(): boolean {
    return this.#fullUntilMs === 0 || this.#fullUntilMs <= this.#now();
  }

  peek(key: string): QuotaStatus {
    const now = this.#now();
    const count = this.#counts.get(key);
    if (count !== undefined) return this.#status(key, this.#present(count, now), now);
    const phaseMs = phaseOf(key, this.#windowMs);
    return this.#status(key, { windowEndsMs: this.#windowEnd(phaseMs, now), own: 0 }, now);
  }

  /** Counts the key once, unless it has reached the limit. @returns the key's status before */
  take(key: string): QuotaStatus {
    const now = this.#now();
    let count = this.#counts.get(key);
    if (count === undefined) {
      const phaseMs = phaseOf(key, this.#windowMs);
      count = { phaseMs, windowEndsMs: this.#windowEnd(phaseMs, now), own: 0, exchanged: 0 };
      this.#counts.set(key, count);
    } else this.#present(count, now);
    const before = this.#status(key, count, now);
    if (before.left === 0) return before;
    count.own += 1;
    if (before.left === 1) this.#noteFull(count.windowEndsMs);
    if (count.own - count.exchanged === this.#exchangedFrom) {
      this.#notable.set(key, count);
      this.onGrowth();
    }
    return before;
  }

  /** Counts of this process for the other processes; if there are too many, only the highest. */
  publish(): ExchangedCount[] {
    const now = this.#now();
    for (const [key, { windowEndsMs }] of this.#notable) if (windowEndsMs <= now) this.#notable.delete(key);
    const exchanged = [...this.#notable];
    // Keys that are left out below are marked, too: they are considered again once their counts have grown.
    for (const [, count] of exchanged) count.exchanged = count.own;
    if (exchanged.length > MOST_KEYS.exchanged) {
      exchanged.sort(([, one], [, other]) => other.own - one.own);
      for (const [key] of exchanged.splice(MOST_KEYS.exchanged)) this.#notable.delete(key);
    }
    return exchanged.map(([key, { windowEndsMs, own }]) => [key, windowEndsMs, own]);
  }

  /** Replaces the known counts of all other processes. */
  hear(exchanged: Iterable<ExchangedCount>): void {
    const others = new Map<string, OthersCount>();
    const now = this.#now();
    for (const [key, windowEndsMs, count] of exchanged) {
      if (windowEndsMs <= now) continue;
      const known = others.get(key);
      if (known?.windowEndsMs === windowEndsMs) known.count += count;
      else if (known === undefined || known.windowEndsMs < windowEndsMs) others.set(key, { windowEndsMs, count });
    }
    this.#others = others;
    for (const [key, { windowEndsMs }] of others) if (this.peek(key).left === 0) this.#noteFull(windowEndsMs);
  }

  #noteFull(windowEndsMs: number): void {
    this.#fullUntilMs = Math.max(this.#fullUntilMs, windowEndsMs);
  }

  #present(count: Count, now: number): Count {
    const left = count.windowEndsMs - now;
    // More than a window is left if the clock was set back.
    if (left <= 0 || left > this.#windowMs) {
      count.windowEndsMs = this.#windowEnd(count.phaseMs, now);
      count.own = 0;
      count.exchanged = 0;
    }
    return count;
  }

  #status(key: string, { windowEndsMs, own }: Pick<Count, 'windowEndsMs' | 'own'>, now: number): QuotaStatus {
    const others = this.#others.size === 0 ? undefined : this.#others.get(key);
    const all = others?.windowEndsMs === windowEndsMs ? own + others.count : own;
    return {
      left: Math.max(0, this.quota.limit - all),
      seconds: Math.max(1, Math.ceil((windowEndsMs - now) / 1_000)),
    };
  }

  /** End of the key's present window, the same in every process. */
  #windowEnd(phaseMs: number, now: number): number {
    return now - ((now - phaseMs) % this.#windowMs) + this.#windowMs;
  }
}

/** FNV-1a hash of the key, as milliseconds within a window. */
function phaseOf(key: string, windowMs: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % windowMs;
}
