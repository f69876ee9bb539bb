/**
 * A counter of one limit, which all processes share without a record per count: each counts by itself, and
 * `countExchange.ts` tells the others (docs/limits.md#counted-together). rate-limiter-flexible would write a record per
 * count, and in memory it has a timer for every key and no bound.
 */
import { LRUCache } from 'lru-cache';

export interface Quota {
  readonly name: string;
  /** Counts within a window. */
  readonly limit: number;
  readonly windowSeconds: number;
}

export interface QuotaStatus {
  /** 0: full. */
  readonly left: number;
  /** Until the window ends, at least 1. */
  readonly seconds: number;
}

/** The counts of one key in one process. */
export type ToldCount = readonly [key: string, windowEndsMs: number, count: number];

/**
 * Keys in memory, and keys that others are told of. With more keys than these, those that were counted least recently,
 * or least, are forgotten.
 */
const MOST_KEYS = { counted: 50_000, told: 2_000 };

/** Others are told of a key once it has this part of the limit; what is less is noise. */
const TOLD_FROM = 1 / 20;

interface Count {
  /** Spreads the ends of windows: limited callers would all come back at once. */
  readonly phaseMs: number;
  windowEndsMs: number;
  own: number;
  told: number;
}

interface OthersCount {
  windowEndsMs: number;
  count: number;
}

export class SharedCounter {
  readonly quota: Quota;
  readonly #windowMs: number;
  readonly #toldFrom: number;
  readonly #now: () => number;
  /** Made with the first count: it takes 10 ms, and most processes never count some limits. */
  #counts: LRUCache<string, Count> | undefined;
  readonly #notable = new Map<string, Count>();
  #others: ReadonlyMap<string, OthersCount> = new Map();
  /** The end of the last window of a key that is full. */
  #fullUntilMs = 0;
  /** Called once when a key has grown by so much that others should know soon, and again after they were told. */
  onGrowth: () => void = () => undefined;

  /** `now`: milliseconds since the epoch. */
  constructor(quota: Quota, now: () => number) {
    this.quota = quota;
    this.#windowMs = quota.windowSeconds * 1_000;
    this.#toldFrom = Math.max(1, Math.floor(quota.limit * TOLD_FROM));
    this.#now = now;
  }

  /** No key is full. Cheap, where a look at a key is not. */
  get hasRoomForAll(): boolean {
    return this.#fullUntilMs === 0 || this.#fullUntilMs <= this.#now();
  }

  look(key: string): QuotaStatus {
    const now = this.#now();
    const count = this.#counts?.get(key);
    if (count !== undefined) return this.#status(key, this.#present(count, now), now);
    const phaseMs = phaseOf(key, this.#windowMs);
    return this.#status(key, { windowEndsMs: this.#windowEnd(phaseMs, now), own: 0 }, now);
  }

  /** Counts the key once, unless it is full. @returns how it stood before */
  take(key: string): QuotaStatus {
    const now = this.#now();
    this.#counts ??= new LRUCache({ max: MOST_KEYS.counted });
    let count = this.#counts.get(key);
    if (count === undefined) {
      const phaseMs = phaseOf(key, this.#windowMs);
      count = { phaseMs, windowEndsMs: this.#windowEnd(phaseMs, now), own: 0, told: 0 };
      this.#counts.set(key, count);
    } else this.#present(count, now);
    const before = this.#status(key, count, now);
    if (before.left === 0) return before;
    count.own += 1;
    if (before.left === 1) this.#noteFull(count.windowEndsMs);
    if (count.own - count.told === this.#toldFrom) {
      this.#notable.set(key, count);
      this.onGrowth();
    }
    return before;
  }

  /** What others should know of this process, the highest counts where there are too many. */
  tell(): ToldCount[] {
    const now = this.#now();
    for (const [key, { windowEndsMs }] of this.#notable) if (windowEndsMs <= now) this.#notable.delete(key);
    const told = [...this.#notable];
    // Also of those that are left out: they are thought of again once they have grown.
    for (const [, count] of told) count.told = count.own;
    if (told.length > MOST_KEYS.told) {
      told.sort(([, one], [, other]) => other.own - one.own);
      for (const [key] of told.splice(MOST_KEYS.told)) this.#notable.delete(key);
    }
    return told.map(([key, { windowEndsMs, own }]) => [key, windowEndsMs, own]);
  }

  /** Takes what all other processes have told, in place of what they told before. */
  hear(told: Iterable<ToldCount>): void {
    const others = new Map<string, OthersCount>();
    const now = this.#now();
    for (const [key, windowEndsMs, count] of told) {
      if (windowEndsMs <= now) continue;
      const known = others.get(key);
      if (known?.windowEndsMs === windowEndsMs) known.count += count;
      else if (known === undefined || known.windowEndsMs < windowEndsMs) others.set(key, { windowEndsMs, count });
    }
    this.#others = others;
    for (const [key, { windowEndsMs }] of others) if (this.look(key).left === 0) this.#noteFull(windowEndsMs);
  }

  #noteFull(windowEndsMs: number): void {
    this.#fullUntilMs = Math.max(this.#fullUntilMs, windowEndsMs);
  }

  #present(count: Count, now: number): Count {
    const left = count.windowEndsMs - now;
    // More than a window is left where the clock was set back.
    if (left <= 0 || left > this.#windowMs) {
      count.windowEndsMs = this.#windowEnd(count.phaseMs, now);
      count.own = 0;
      count.told = 0;
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

  /** The same in every process. */
  #windowEnd(phaseMs: number, now: number): number {
    return now - ((now - phaseMs) % this.#windowMs) + this.#windowMs;
  }
}

/** FNV-1a of the key, within a window. */
function phaseOf(key: string, windowMs: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % windowMs;
}
