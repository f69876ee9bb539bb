/**
 * A lease: of several processes one does the work, the others stand by. It is a record changed by compare-and-set; the
 * record itself never expires, so the fencing number in it never goes back. Who holds it is judged by each process's
 * own monotonic clock alone: a standby takes over when the record has not changed for the lease's time, a holder gives
 * up when its last renewal is that long ago. Only of a process of the same machine that is seen to have ended nobody
 * waits for the end of its time.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { hasEnded, lives, processLife } from './processLife.js';

/** Default time of a lease, in ms: a frozen holder, or a lost machine, is followed within half a second more. */
export const LEASE_MS = 3_000;

/** A lease that was had. */
export interface Lease {
  /** Higher than that of every earlier holder. */
  readonly fence: number;
  /**
   * Whether it is held at this moment, judged by the clock: false in a process that was frozen and has only just woken.
   * Ask before each effect.
   */
  readonly held: boolean;
  /** Aborted once the lease is lost or released. May come later than `held` turns false. */
  readonly lost: AbortSignal;
  /** Gives it up, so that another takes it at once. Never throws. */
  release(): Promise<void>;
}

/** Options of `acquireLease`. */
export interface LeaseOptions {
  /** Names this process: no other living process of the installation may have the same. */
  readonly holder: string;
  /** Stops waiting. A lease already had is not touched. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Default `LEASE_MS`. The same in all processes. */
  readonly ttlMs?: number | undefined;
  /** Told, while it waits, each time that another is seen to hold it on. */
  readonly onHeld?: (holder: string) => void;
  /**
   * Told, while it waits, of each look: what it failed with, or `undefined` where another has the lease. Must not
   * throw.
   */
  readonly onTrouble?: (error: Error | undefined) => void;
}

/** Another holds the lease. */
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
  /** The holder's process (`processLife`), where its system tells. */
  readonly life?: string;
  /**
   * When it was renewed or given up, by the clock of whoever did: ISO 8601, UTC. Absent: an earlier release did. For
   * people alone; nothing decides by it.
   */
  readonly at?: string;
}

/** This process. */
const OWN_LIFE = processLife();

/** What this process puts into the record. */
function valueOf(holder: string | null, fence: number): LeaseValue {
  return { holder, fence, ...(OWN_LIFE === undefined ? {} : { life: OWN_LIFE }), at: new Date().toISOString() };
}

/** What a standby has seen: the record's version, and since when it has not changed. */
interface Seen {
  readonly version: number;
  readonly since: number;
}

/**
 * Waits until the lease is had, for as long as it takes, also while the store can't be reached.
 * @param name what the lease is for, at most 100 characters.
 * @returns `undefined` when `signal` was aborted first.
 */
export async function acquireLease(records: Records, name: string, options: LeaseOptions): Promise<Lease | undefined> {
  const { holder, signal, logger, ttlMs = LEASE_MS, onHeld, onTrouble } = options;
  const key = `lease/${name}`;
  let seen: Seen | undefined;
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
 * Takes the lease, or finds out that another is alive and holds it: within the lease's time.
 * @returns `undefined` when `signal` was aborted first.
 * @throws LeaseHeldError, or UnavailableError when the store can't be reached at the beginning
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

/** How a lease stands. It is held by a living process only if `version` rises within its time. */
export interface LeaseState {
  /** Who had it last, and may still have it; null: it was given up. */
  readonly holder: string | null;
  readonly version: number;
  /** When it was renewed or given up, by the clock of whoever did: ISO 8601, UTC. Absent: an earlier release did. */
  readonly at: string | undefined;
  /** Whether that process lives; `undefined`: it can't be told from here. */
  readonly lives: boolean | undefined;
}

/** How a lease stands; `undefined`: nobody ever had it. @throws UnavailableError */
export async function leaseState(records: Records, name: string): Promise<LeaseState | undefined> {
  const record = await records.get<LeaseValue>(`lease/${name}`);
  if (record === undefined) return undefined;
  const { holder, at, life } = record.value;
  return { holder, version: record.version, at, lives: life === undefined ? undefined : lives(life, OWN_LIFE) };
}

/** A record of this very process is one that it lost by its own clock and nobody took. */
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

  /** One renewal. @returns whether the lease is still ours. */
  async function renew(): Promise<boolean> {
    for (;;) {
      const asked = performance.now();
      const renewed = await records.put(key, valueOf(holder, fence), { expected: version });
      if (renewed !== undefined) {
        version = renewed;
        renewedAt = asked;
        return true;
      }
      // An earlier renewal whose outcome was unknown may have been stored after all; then the record is still ours.
      // Others count from when it was stored:
      // only one that is stored from now on makes it last longer.
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
        // Counted from when it was asked for, as its time is: a store that takes long to answer leaves less of it.
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
