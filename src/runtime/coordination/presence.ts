/**
 * Whether the process that holds something is gone, so that nobody waits for what it can't give back any more. Of a
 * process that this machine sees its system says so, at once and for certain (`processLife.ts`). Any other process, of
 * another machine or container, says in a record several times a second that it lives. One whose record stands still,
 * by this process's monotonic clock, is taken for gone. It may only be frozen: what is done in its place must be
 * harmless where it goes on.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';
import { pause } from '../../lib/async/pause.js';
import { hasEnded, isOfThisMachine, processLife } from './processLife.js';

const PREFIX = 'present/';
const EVERY_MS = 300;
/**
 * A record that stood still so long is of a process that is gone, ms: with a look every 300 ms that is found out within
 * 1.3 s.
 */
const STILL_MS = 1_000;
/** What a process that is gone leaves, ms. Longer than any clock of the installation is off. */
const EXPIRES_MS = 3_600_000;

/** Names a process in what it holds. */
export interface Holder {
  readonly process: string;
  /** Where its system tells (`processLife`). */
  readonly life?: string;
}

/** What a process knows of itself and of the others. */
export interface Presence {
  /** This process. */
  readonly self: Holder;
  /** Whether that process is gone, as far as is known by now. */
  isGone(holder: Holder): boolean;
  /** Says no more that it lives. */
  close(): Promise<void>;
}

/** What it is made of. */
export interface PresenceOptions {
  readonly records: Records;
  readonly logger: Logger;
  /** Default: what the system says. `null`: nothing, as in a container of its own. */
  readonly life?: string | null;
}

interface Sighting {
  /** 0: there is no record. */
  readonly version: number;
  /** When it was first seen so: ms of the monotonic clock. */
  readonly since: number;
}

/** Begins to say that this process lives, and to watch the others. */
export function openPresence({ records, logger, life = processLife() ?? null }: PresenceOptions): Presence {
  const self: Holder = { process: randomUUID(), ...(life === null ? {} : { life }) };
  const sightings = new Map<string, Sighting>();
  const closing = new AbortController();
  /** When the last look that brought an answer began. */
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

  /** While the store does not answer no process can say that it lives: what was seen before tells of nothing. */
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
