/** What the parts of a simulation see of it. */
import type { World } from '../../../src/lib/world.js';
import type { Chance } from './chance.js';
import type { Entry, Owner } from './entryQueue.js';
import type { Faults } from './faults.js';
import type { Marks } from './marks.js';
import type { Outages } from './outages.js';

/** An owner of entries. */
export interface Actor extends Owner {
  readonly world: World;
  /** Whether an entry may run now. An entry that may not is lost, or stored until it may. */
  admits(entry: Entry): boolean;
}

export interface NewEntry {
  readonly owner: Actor;
  readonly inMs: number;
  /** `timer`, `soon`, `effect`, `answer`, `start`, `fault` and the like. */
  readonly kind: string;
  /** What the entry does, in a few words. Part of the hash, so it must be the same in each run of the seed. */
  readonly text: string;
  readonly run: () => void;
}

export interface Simulation {
  readonly seed: number | string;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly marks: Marks;
  readonly outages: Outages;
  /** Owner of what belongs to no process: effects on engines, faults, checks. */
  readonly neutral: Actor;
  /** Owner of the entry that runs now; of the latest one between two entries. */
  actor(): Actor;
  /** Virtual milliseconds since the start. */
  ms(): number;
  /** As `ms`, without long times in which nothing happens. */
  busyMs(): number;
  /** The true time, milliseconds since 1970, which the clocks of processes may deviate from. */
  now(): number;
  schedule(entry: NewEntry): Entry;
  /** Schedules an entry again whose owner could not take it at its time. */
  again(entry: Entry): void;
  /**
   * Runs entries until the virtual time `untilMs`, or until `done` holds after an entry.
   * @throws SimulationError for an error that an entry threw, or a rejection that nothing handled
   */
  run(untilMs: number, done?: () => boolean): Promise<void>;
  /** Number of entries that ran. */
  entries(): number;
  /** The hash over all entries that ran: two runs of one seed with the same hash did the same. */
  hash(): string;
  /** The latest entries, a line each. */
  latest(): readonly string[];
}
