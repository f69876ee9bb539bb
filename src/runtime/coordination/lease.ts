/**
 * A lease: of several processes one works, the others stand by. It is a record changed by compare-and-set that never
 * expires, so its fencing number never goes back. Each process judges by its own monotonic clock: a standby takes over
 * when the record has not changed for the lease's time, a holder gives up when its last renewal is that long ago. A
 * holder on the same machine that has ended is followed at once.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { hasEnded, lives, processLife } from './processLife.js';

/** Default time of a lease, in ms: a frozen holder or a lost machine is followed within half a second more. */
export const LEASE_MS = 3_000;

/** A lease that was acquired. */
export interface Lease {
  /** Higher than that of every earlier holder. */
  readonly fence: number;
  /**
   * Whether it is held at this moment, by the clock: false in a process that has just woken up. Ask before each effect.
   */
  readonly held: boolean;
  /** Aborted once the lease is lost or released. May come later than `held` turns false. */
  readonly lost: AbortSignal;
  /** Gives it up, so that another process takes it at once. Never throws. */
  release(): Promise<void>;
}

export interface LeaseOptions {
  /** Names this process: unique among the living processes of the installation. */
  readonly holder: string;
  /** Stops waiting. A lease already acquired is not touched. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Default `LEASE_MS`. The same in all processes. */
  readonly ttlMs?: number | undefined;
  /** Called, while it waits, each time that another process has renewed it. */
  readonly onHeld?: (holder: string) => void;
  /** Called, while it waits, after each look: with its failure, or `undefined`. Must not throw. */
  readonly onTrouble?: (error: Error | undefined) => void;
}

/** Another process holds the lease. */
export class LeaseHeldError extends Error {
  override readonly name = 'LeaseHeldError';
  readonly holder: string;
  constructor(holder: string) {
    super(`held by ${holder}`);
    this.holder = holder;
  }
}

/** `holder: null`: released. */
interface LeaseValue {
  readonly holder: string | null;
  readonly fence: number;
  /** The holder's `processLife`, where its system tells. */
  readonly life?: string;
  /** When it was renewed or given up, by that process's clock: ISO 8601, UTC. For people alone. */
  readonly at?: string;
}

const OWN_LIFE = processLife();

function valueOf(holder: string | null, fence: number): LeaseValue {
  return { holder, fence, ...(OWN_LIFE === undefined ? {} : { life: OWN_LIFE }), at: new Date().toISOString() };
}

/** The record's version as a standby saw it, and since when it has not changed. */
interface Observation {
  readonly version: number;
  readonly since: number;
}

/**
 * Waits for the lease, also while the store can't be reached. @param name what it is for, at most 100 characters.
 * @returns `undefined` when `signal` was aborted first.
 */
export async function acquireLease(records: Records, name: string, options: LeaseOptions): Promise<Lease | undefined> {
  const { holder, signal, logger, ttlMs = LEASE_MS, onHeld, onTrouble } = options;
  const key = `lease/${name}`;
  let seen: Observation | undefined;
  let reachable = true;
  while (!signal.aborted) {
    try {
      const asked = performance.now();
      const record = await records.get<LeaseValue>(key);
      if (
        record === undefined ||
        isFree(record.value, holder) ||
        (seen?.version === record.version && asked - seen.since >= ttlMs)
      ) {
        const fence = (record?.value.fence ?? 0) + 1;
        const put = performance.now();
        const version = await records.put(key, valueOf(holder, fence), { expected: record?.version ?? 0 });
        if (version !== undefined) return hold(records, key, { ...options, ttlMs }, { fence, version, renewedAt: put });
      } else if (seen?.version !== record.version) {
        if (seen !== undefined && record.value.holder !== null) onHeld?.(record.value.holder);
        seen = { version: record.version, since: performance.now() };
      }
      reachable = true;
      onTrouble?.(undefined);
    } catch (error) {
      onTrouble?.(error as Error);
      if (reachable) logger.warn({ err: error, lease: name }, 'waiting for a lease: the read store does not take it');
      reachable = false;
    }
    await pause(ttlMs / 12, signal);
  }
  return undefined;
}

/**
 * Takes the lease, or finds within its time that a living process holds it. @returns `undefined` when `signal` was
 * aborted first. @throws LeaseHeldError; UnavailableError when the store can't be reached at the beginning
 */
export async function seizeLease(
  records: Records,
  name: string,
  options: Omit<LeaseOptions, 'onHeld' | 'onTrouble'>,
): Promise<Lease | undefined> {
  await records.get(`lease/${name}`);
  const refused = new AbortController();
  let other: string | undefined;
  const signal = AbortSignal.any([options.signal, refused.signal]);
  const onHeld = (holder: string): void => {
    other = holder;
    refused.abort();
  };
  const lease = await acquireLease(records, name, { ...options, signal, onHeld });
  if (lease === undefined && other !== undefined) throw new LeaseHeldError(other);
  return lease;
}

/** A lease as it is stored. A living process holds it only if `version` rises within its time. */
export interface LeaseState {
  /** The process that had it last, and may still have it; null: it was given up. */
  readonly holder: string | null;
  readonly version: number;
  /** When it was renewed or given up, by that process's clock: ISO 8601, UTC. */
  readonly at: string | undefined;
  /** Whether that process lives; `undefined`: unknown from here. */
  readonly lives: boolean | undefined;
}

/** The lease as it is stored; `undefined`: no process ever had it. @throws UnavailableError */
export async function leaseState(records: Records, name: string): Promise<LeaseState | undefined> {
  const record = await records.get<LeaseValue>(`lease/${name}`);
  if (record === undefined) return undefined;
  const { holder, at, life } = record.value;
  return { holder, version: record.version, at, lives: life === undefined ? undefined : lives(life, OWN_LIFE) };
}

/** A record of this very process is of a lease that it lost by its own clock and none took. */
function isFree({ holder: last, life }: LeaseValue, holder: string): boolean {
  return last === null || last === holder || (life !== undefined && hasEnded(life, OWN_LIFE));
}

/** Renews the lease three times within its time, until it is lost or released. */
function hold(
  records: Records,
  key: string,
  options: Pick<LeaseOptions, 'holder' | 'logger'> & { readonly ttlMs: number },
  had: { readonly fence: number; readonly version: number; readonly renewedAt: number },
): Lease {
  const { holder, logger, ttlMs } = options;
  const { fence } = had;
  const lost = new AbortController();
  let { version, renewedAt } = had;
  const held = (): boolean => !lost.signal.aborted && performance.now() - renewedAt < ttlMs;

  /** @returns whether the lease is still ours. */
  async function renew(): Promise<boolean> {
    for (;;) {
      const asked = performance.now();
      const renewed = await records.put(key, valueOf(holder, fence), { expected: version });
      if (renewed !== undefined) {
        version = renewed;
        renewedAt = asked;
        return true;
      }
      // An earlier renewal of unknown outcome may have been stored: the record is still ours then. Others count from
      // when that was stored, so only a new renewal makes it last longer.
      const record = await records.get<LeaseValue>(key);
      if (record?.value.holder !== holder || record.value.fence !== fence || record.version === version) return false;
      version = record.version;
    }
  }

  async function keep(): Promise<void> {
    let wait = ttlMs / 3;
    for (;;) {
      await pause(wait, lost.signal);
      if (lost.signal.aborted) return;
      if (!held()) break;
      try {
        if (!(await renew())) break;
        // Counted from when it was asked for, as its time is.
        wait = Math.max(0, renewedAt + ttlMs / 3 - performance.now());
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        wait = ttlMs / 12;
      }
    }
    if (lost.signal.aborted) return;
    logger.warn({ lease: key, fence }, 'lease lost');
    lost.abort();
  }

  const kept = keep().catch((error: unknown) => {
    logger.error({ err: error, lease: key, fence }, 'lease given up');
    lost.abort();
  });

  return {
    fence,
    get held() {
      return held();
    },
    lost: lost.signal,
    async release() {
      const mine = held();
      lost.abort();
      await kept;
      if (!mine) return;
      try {
        await records.put(key, valueOf(null, fence), { expected: version });
      } catch (error) {
        logger.info({ err: error, lease: key }, 'lease not released: the next holder waits until it runs out');
      }
    },
  };
}
