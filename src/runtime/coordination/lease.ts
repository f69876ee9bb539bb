/**
 * A lease lets one of several processes work, while the others stand by. It is a record changed by compare-and-set that
 * never expires, so its fencing number only rises. Each process uses its own monotonic clock: a standby takes over when
 * the record has not changed for the lease's time; a holder gives up that long after its last renewal. On one machine a
 * standby takes over at once from a process that has ended.
 */
import type { Logger } from 'pino';
import { deferred } from '../../lib/async/deferred.js';
import { pauseForBeats } from '../../lib/async/beats.js';
import { systemTime } from '../../lib/clock.js';
import { ticks } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { hasEnded, lives, processLife } from './processLife.js';

/**
 * Milliseconds that a lease lasts without a renewal. Takeover from a frozen holder or a lost machine takes half a
 * second more.
 */
export const LEASE_MS = 3_000;

export interface Lease {
  /** Fencing number, higher than that of every earlier holder. */
  readonly fence: number;
  /**
   * Whether the lease is held, checked against the clock: false in a process that was frozen for too long. Check it
   * before each effect. Once false it stays false, even if a late renewal succeeds: skipped work is started again under
   * another lease only.
   */
  readonly held: boolean;
  /** Aborted once the lease is lost or released, at the latest with the first `held` that is false. */
  readonly lost: AbortSignal;
  /**
   * Resolves at once while renewals come in time; else with the next renewal, or the loss of the lease. Await it before
   * new work.
   */
  renewed(): Promise<void>;
  /** Lets another process take the lease at once. Never throws. */
  release(): Promise<void>;
}

export interface LeaseOptions {
  /** Name of this process, unique among the living processes of the installation. */
  readonly holder: string;
  /** Ends the wait for the lease; a lease that is already acquired is not released. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Milliseconds that the lease lasts without a renewal, the same in all processes; default `LEASE_MS`. */
  readonly ttlMs?: number | undefined;
  /** Milliseconds between two polls of the record by a standby; default a twelfth of the lease's time. */
  readonly pollMs?: number;
  /** While waiting: called after each renewal by another process. */
  readonly onHeld?: (holder: string) => void;
  /** While waiting: called after each poll of the record, with the error if it failed. Must not throw. */
  readonly onTrouble?: (error: Error | undefined) => void;
}

/** Another process may have taken the work over. Nothing was attempted here, so nothing has failed. */
export class NotOursError extends UnavailableError {}

/** Returns a check that throws NotOursError once the lease is lost or `signal` is aborted. */
export function whileHeld(held: () => boolean, signal: AbortSignal): () => void {
  return () => {
    if (signal.aborted || !held()) throw new NotOursError('the work may have passed to another process');
  };
}

export class LeaseHeldError extends Error {
  override readonly name = 'LeaseHeldError';
  readonly holder: string;
  constructor(holder: string) {
    super(`held by ${holder}`);
    this.holder = holder;
  }
}

/** Value of a lease record; `holder: null`: the lease was released. */
interface LeaseValue {
  readonly holder: string | null;
  readonly fence: number;
  /** The holder's `processLife`. */
  readonly life?: string;
  /** Time of the last renewal or release, as in `LeaseState`. */
  readonly at?: string;
}

const OWN_LIFE = processLife();

function valueOf(holder: string | null, fence: number): LeaseValue {
  return { holder, fence, ...(OWN_LIFE === undefined ? {} : { life: OWN_LIFE }), at: systemTime() };
}

/** Lease record as last read by a standby. `since`: `ticks()` at the first read of this version. */
interface Observation {
  readonly version: number;
  readonly since: number;
}

/**
 * Waits until this process acquires the lease. Failures of the store are waited out.
 * @param name at most 100 characters
 * @returns `undefined` when `signal` was aborted first
 */
export async function acquireLease(records: Records, name: string, options: LeaseOptions): Promise<Lease | undefined> {
  const { holder, signal, logger, onHeld, onTrouble } = options;
  const { ttlMs = LEASE_MS, pollMs = Math.min(ttlMs, LEASE_MS) / 12 } = options;
  const key = `lease/${name}`;
  let observed: Observation | undefined;
  let reachable = true;
  while (!signal.aborted) {
    try {
      const requestedAt = ticks();
      const record = await records.get<LeaseValue>(key);
      if (
        record === undefined ||
        isFree(record.value, holder) ||
        (observed?.version === record.version && requestedAt - observed.since >= ttlMs)
      ) {
        const fence = (record?.value.fence ?? 0) + 1;
        const put = ticks();
        const version = await records.put(key, valueOf(holder, fence), { expected: record?.version ?? 0 });
        if (version !== undefined) return hold(records, key, { ...options, ttlMs }, { fence, version, renewedAt: put });
      } else if (observed?.version !== record.version) {
        if (observed !== undefined && record.value.holder !== null) onHeld?.(record.value.holder);
        observed = { version: record.version, since: ticks() };
      }
      reachable = true;
      onTrouble?.(undefined);
    } catch (error) {
      onTrouble?.(error as Error);
      if (reachable) logger.warn({ err: error, lease: name }, 'waiting for a lease: the read store does not take it');
      reachable = false;
    }
    await pauseForBeats(pollMs, signal);
  }
  return undefined;
}

/**
 * Acquires the lease, or finds within the lease's lifetime that a living process holds it.
 * @returns `undefined` when `signal` was aborted first
 * @throws LeaseHeldError; UnavailableError from the first read
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

/** A living process holds the lease only if `version` rises within the lease's time. */
export interface LeaseState {
  /** The last holder, which may hold it still; null: released. */
  readonly holder: string | null;
  readonly version: number;
  /** Rises by one each time that a process takes the lease. */
  readonly fence: number;
  /** The last renewal or release, by the holder's clock (ISO 8601, UTC); for people only. */
  readonly at: string | undefined;
  /** Whether the last holder's process is alive; `undefined`: unknown, for example on another machine. */
  readonly lives: boolean | undefined;
}

/** `undefined`: no process has ever held the lease. @throws UnavailableError */
export async function leaseState(records: Records, name: string): Promise<LeaseState | undefined> {
  const record = await records.get<LeaseValue>(`lease/${name}`);
  if (record === undefined) return undefined;
  const { holder, fence, at, life } = record.value;
  return { holder, version: record.version, fence, at, lives: life === undefined ? undefined : lives(life, OWN_LIFE) };
}

/** A record that names this process is of a lease that it lost by its clock and no other process has taken. */
function isFree({ holder: last, life }: LeaseValue, holder: string): boolean {
  return last === null || last === holder || (life !== undefined && hasEnded(life, OWN_LIFE));
}

/** Number of renewal intervals without a renewal after which new work waits. */
const LATE = 1.5;

/** Renews the lease three times within its lifetime, or once a second if the lifetime is long. */
function hold(
  records: Records,
  key: string,
  options: Pick<LeaseOptions, 'holder' | 'logger'> & { readonly ttlMs: number },
  had: { readonly fence: number; readonly version: number; readonly renewedAt: number },
): Lease {
  const { holder, logger, ttlMs } = options;
  const { fence } = had;
  const lost = new AbortController();
  const everyMs = Math.min(ttlMs, LEASE_MS) / 3;
  let { version, renewedAt } = had;
  let next = deferred<void>();

  function end(): void {
    lost.abort();
    next.resolve();
  }

  function lose(): void {
    if (lost.signal.aborted) return;
    logger.warn({ lease: key, fence }, 'lease lost');
    end();
  }

  const age = (): number => ticks() - renewedAt;

  function held(): boolean {
    if (age() >= ttlMs) lose();
    return !lost.signal.aborted;
  }

  async function renew(): Promise<boolean> {
    for (;;) {
      const requestedAt = ticks();
      const renewed = await records.put(key, valueOf(holder, fence), { expected: version });
      if (renewed !== undefined) {
        version = renewed;
        renewedAt = requestedAt;
        next.resolve();
        next = deferred();
        return true;
      }
      // An earlier renewal without an answer may have been stored. Standbys count from that time, so only a new renewal
      // prolongs the lease.
      const record = await records.get<LeaseValue>(key);
      if (record?.value.holder !== holder || record.value.fence !== fence || record.version === version) return false;
      version = record.version;
    }
  }

  async function keep(): Promise<void> {
    for (let wait = everyMs; ;) {
      // Leases are renewed at the same beat, so that their records are stored in one transaction.
      await pauseForBeats(wait, lost.signal);
      if (!held()) return;
      try {
        if (!(await renew())) return lose();
        // The wait is counted from the renewal's request, as the lease's time is.
        wait = Math.max(0, everyMs - age());
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        wait = everyMs / 4;
      }
    }
  }

  const renewing = keep().catch((error: unknown) => {
    logger.error({ err: error, lease: key, fence }, 'lease given up');
    end();
  });

  return {
    fence,
    get held() {
      return held();
    },
    lost: lost.signal,
    async renewed() {
      while (!lost.signal.aborted && age() > LATE * everyMs) await next.promise;
    },
    async release() {
      const mine = held();
      end();
      await renewing;
      if (!mine) return;
      try {
        await records.put(key, valueOf(null, fence), { expected: version });
      } catch (error) {
        logger.info({ err: error, lease: key }, 'lease not released: the next holder waits until it runs out');
      }
    },
  };
}
