/**
 * Whether the process that holds something is gone, so that none waits for it. On this machine the system says so, at
 * once and for certain (`processLife.ts`). A process of another machine or container renews a record several times a
 * second; one whose record stands still, by this process's monotonic clock, is taken for gone. It may only be frozen:
 * what is done in its place must be harmless where it goes on.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';
import { pause } from '../../lib/async/pause.js';
import { hasEnded, isOfThisMachine, processLife } from './processLife.js';

const PREFIX = 'present/';
const EVERY_MS = 300;
/** A record that stood still so long, in ms, is of a process that is gone: found out within 1.3 s. */
const STILL_MS = 1_000;
/** How long a record stays, in ms: longer than any clock of the installation is off. */
const EXPIRES_MS = 3_600_000;

export interface Holder {
  readonly process: string;
  /** Its `processLife`, where its system tells. */
  readonly life?: string;
}

export interface Presence {
  readonly self: Holder;
  /** Whether that process is gone, as far as is known. */
  isGone(holder: Holder): boolean;
  /** Deletes this process's record. */
  close(): Promise<void>;
}

export interface PresenceOptions {
  readonly records: Records;
  readonly logger: Logger;
  /** Default: this process's life. `null`: unknown, as in a container of its own. */
  readonly life?: string | null;
}

interface Sighting {
  /** 0: there is no record. */
  readonly version: number;
  /** When it was first seen so: ms of the monotonic clock. */
  readonly since: number;
}

/** Announces this process, and watches the others. */
export function openPresence({ records, logger, life = processLife() ?? null }: PresenceOptions): Presence {
  const self: Holder = { process: randomUUID(), ...(life === null ? {} : { life }) };
  const sightings = new Map<string, Sighting>();
  const closing = new AbortController();
  /** When the last answered look began. */
  let looked = Number.NEGATIVE_INFINITY;

  function see(process: string, version: number): void {
    if (sightings.get(process)?.version !== version) sightings.set(process, { version, since: performance.now() });
  }

  async function look(): Promise<void> {
    const began = performance.now();
    const found = new Map((await records.list(PREFIX)).map(({ key, version }) => [key.slice(PREFIX.length), version]));
    for (const process of new Set([...sightings.keys(), ...found.keys()])) see(process, found.get(process) ?? 0);
    for (const [process, { version, since }] of sightings)
      if (version === 0 && began - since > EXPIRES_MS) sightings.delete(process);
    looked = began;
  }

  /** While the store does not answer no process can renew its record: what was seen before says nothing. */
  function forget(): void {
    sightings.clear();
    looked = Number.NEGATIVE_INFINITY;
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await records.put(PREFIX + self.process, {}, { expiresAt: Date.now() + EXPIRES_MS });
        await look();
      } catch (error) {
        forget();
        logger.debug({ err: error }, 'could not say that this process lives');
      }
      await pause(EVERY_MS, closing.signal);
    }
  }
  const running = run();

  return {
    self,
    isGone({ process, life: its }) {
      if (process === self.process) return false;
      if (its !== undefined && life !== null && isOfThisMachine(its, life)) return hasEnded(its, life);
      const sighting = sightings.get(process);
      if (sighting === undefined) see(process, 0);
      return sighting !== undefined && looked - sighting.since >= STILL_MS;
    },
    async close() {
      closing.abort();
      await running;
      await records
        .delete(PREFIX + self.process)
        .catch((error: unknown) => logger.debug({ err: error }, 'could not say that this process ends'));
    },
  };
}
