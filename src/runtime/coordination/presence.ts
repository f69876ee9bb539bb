/**
 * Tells whether the process that holds something has ended, so that no process waits for it. On the same machine the
 * system knows (`processLife.ts`). A process of another machine or container renews a record while it may hold
 * something; without a renewal, by this process's monotonic clock, it counts as ended. That process may only be frozen,
 * so work done in its place must be harmless if it continues.
 */
import type { Logger } from 'pino';
import { randomUUID, systemMs, ticks } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { pauseForBeats } from '../../lib/async/beats.js';
import { pause } from '../../lib/async/pause.js';
import { hasEnded, isOfThisMachine, processLife } from './processLife.js';

const PREFIX = 'present/';
/** Milliseconds between renewals, and between scans, while this process holds something or asks about others. */
const EVERY_MS = 300;
/** Milliseconds between scans at rest. */
const REST_MS = 1_000;
/** A record without a renewal for this long counts as ended; found within 1.3 s, at rest within 2 s. */
const STILL_MS = 1_000;
/** Milliseconds after its last use in which an identity is renewed: longer than anything is held under it. */
const PRESENT_MS = 120_000;
/** Milliseconds until a presence record expires, longer than any clock error of the installation. */
const EXPIRES_MS = 3_600_000;

export interface Holder {
  readonly process: string;
  /** Identity of the process in the system, from `processLife`; absent: unknown. */
  readonly life?: string;
}

export interface Presence {
  /**
   * Identity of this process, for what it is about to hold for less than `PRESENT_MS`. A process that has long held
   * nothing takes a new one, so that no other process remembers it without renewals.
   */
  readonly self: Holder;
  isGone(holder: Holder): boolean;
  close(): Promise<void>;
}

interface PresenceOptions {
  readonly records: Records;
  readonly logger: Logger;
  /**
   * Identity of this process in the system; default: from `processLife`. `null`: unknown, as in a container of its own.
   */
  readonly life?: string | null;
}

interface Sighting {
  /** Version of the presence record; 0: there is no record. */
  readonly version: number;
  /** Time of the first read of this version, by the monotonic clock. */
  readonly since: number;
}

export function openPresence({ records, logger, life = processLife() ?? null }: PresenceOptions): Presence {
  let self: Holder | undefined;
  let presentUntil = Number.NEGATIVE_INFINITY;
  let busyUntil = Number.NEGATIVE_INFINITY;
  let resting = new AbortController();
  const sightings = new Map<string, Sighting>();
  const closing = new AbortController();
  let scannedAt = Number.NEGATIVE_INFINITY;

  function see(process: string, version: number): void {
    if (sightings.get(process)?.version !== version) sightings.set(process, { version, since: ticks() });
  }

  async function scan(): Promise<void> {
    const start = ticks();
    const found = new Map((await records.list(PREFIX)).map(({ key, version }) => [key.slice(PREFIX.length), version]));
    for (const process of new Set([...sightings.keys(), ...found.keys()])) see(process, found.get(process) ?? 0);
    for (const [process, { version, since }] of sightings)
      if (version === 0 && start - since > EXPIRES_MS) sightings.delete(process);
    scannedAt = start;
  }

  /** Discards all sightings: while the store fails no process can renew its record, so they prove nothing. */
  function forget(): void {
    sightings.clear();
    scannedAt = Number.NEGATIVE_INFINITY;
  }

  async function say(): Promise<void> {
    if (self === undefined) return;
    const key = PREFIX + self.process;
    if (ticks() < presentUntil) await records.put(key, {}, { expiresAt: systemMs() + EXPIRES_MS });
    else {
      self = undefined;
      await records.delete(key);
    }
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      resting = new AbortController();
      try {
        await say();
        await scan();
      } catch (error) {
        forget();
        logger.debug({ err: error }, 'could not say that this process lives');
      }
      if (ticks() < busyUntil) await pause(EVERY_MS, closing.signal);
      else await pauseForBeats(REST_MS, AbortSignal.any([closing.signal, resting.signal]));
    }
  }
  const running = run();

  function busy(): void {
    busyUntil = ticks() + PRESENT_MS;
    resting.abort();
  }

  return {
    get self() {
      if (self === undefined || ticks() >= presentUntil)
        self = { process: randomUUID(), ...(life === null ? {} : { life }) };
      presentUntil = ticks() + PRESENT_MS;
      busy();
      return self;
    },
    isGone({ process, life: its }) {
      if (process === self?.process) return false;
      if (its !== undefined && life !== null && isOfThisMachine(its, life)) return hasEnded(its, life);
      busy();
      const sighting = sightings.get(process);
      if (sighting === undefined) see(process, 0);
      return sighting !== undefined && scannedAt - sighting.since >= STILL_MS;
    },
    async close() {
      closing.abort();
      await running;
      if (self === undefined) return;
      await records
        .delete(PREFIX + self.process)
        .catch((error: unknown) => logger.debug({ err: error }, 'could not say that this process ends'));
    },
  };
}
