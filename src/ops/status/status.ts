/** How a projection, or a process manager, stands: the lines of the status. */
import type { Position } from '../../ports/eventStore.js';

/** What is behind is counted up to so many events, or for so long, in ms. */
export const COUNT = { count: 20_000, withinMs: 300 };

/** What projections and process managers have in common. Times are ISO 8601, UTC. */
interface CommonStatus {
  readonly name: string;
  /** Everything up to here is done; null: nothing yet. */
  readonly position: Position | null;
  /**
   * What is stored in its place and is no place in the log, shortened: it counts as absent. Null: nothing is wrong with
   * it.
   */
  readonly invalid_position: string | null;
  /** Events that it subscribes to and has not done, up to the log's end. */
  readonly lag_events: number;
  /** False: there may be more. */
  readonly lag_exact: boolean;
  /** Age of the oldest of them, seconds; null: not found in time. */
  readonly lag_seconds: number | null;
  /** Such events that it does a second. */
  readonly per_second: number;
  /** The process that works; null: none does. */
  readonly holder: string | null;
  /** Where none does: which process did last; null: one does, or none ever did. */
  readonly last_holder: LastHolder | null;
}

/** A process that had a lease and does not renew it. */
export interface LastHolder {
  readonly process: string;
  /** When it renewed it last, by its own clock; null: an earlier release did not note it. */
  readonly since: string | null;
  /**
   * Whether it lives: true may mean that its disk is full, or that it is frozen; null: it can't be told from this
   * machine.
   */
  readonly lives: boolean | null;
}

/** How a projection stands. */
export interface ReadModelStatus extends CommonStatus {
  readonly kind: 'projection';
  readonly version: number;
  /** How often this version had been built before. */
  readonly build: number;
  /**
   * Whether readers use it. Where they don't, nobody (`holder`) works on it until a process that knows it leads and
   * begins it.
   */
  readonly in_use: boolean;
  /** Documents out of service. */
  readonly quarantined: number;
  readonly rebuild: RebuildStatus | null;
  /**
   * What readers use where it is of another release: until this one's version is built; null: they use this one, or
   * none has ever been built.
   */
  readonly served: ServedBuildStatus | null;
  /** The build that can be gone back to, and until when. */
  readonly former: PreviousBuildStatus | null;
  /**
   * Where a rebuild came after a deployment: what the release before it made, kept beside `former` so that this can be
   * brought back.
   */
  readonly former_release: PreviousBuildStatus | null;
}

/** A build that is kept though readers have left it, and until when. */
export interface PreviousBuildStatus {
  readonly version: number;
  readonly build: number;
  readonly until: string;
}

/** What readers use, of another release. */
export interface ServedBuildStatus {
  readonly version: number;
  readonly build: number;
  readonly position: Position | null;
  readonly invalid_position: string | null;
  readonly lag_events: number;
  readonly lag_exact: boolean;
  readonly lag_seconds: number | null;
  /** The process that keeps it up to date; null: none does, so what readers get grows old. */
  readonly holder: string | null;
}

/** A rebuild under way. */
export interface RebuildStatus {
  readonly kind: 'rebuild' | 'rollback';
  readonly state: string;
  readonly version: number;
  readonly build: number;
  readonly by: string;
  readonly reason: string | null;
  readonly at: string;
  /** Who builds; null: nobody does, it waits to be gone on with. */
  readonly holder: string | null;
  readonly events: number | null;
  readonly total: number | null;
  readonly per_second: number | null;
  readonly seconds_left: number | null;
}

/** How a process manager stands. */
export interface ProcessManagerStatus extends CommonStatus {
  readonly kind: 'process';
  /** Pieces of work that are under way, or wait for their next attempt. */
  readonly in_flight: number;
  /** Pieces of work that were given up and that nobody has seen to. */
  readonly parked: number;
}

/** A part of a process that is to run all the time and fails. */
export interface FailingPart {
  readonly kind: 'part';
  readonly name: string;
  /** The process it belongs to. */
  readonly process: string;
  /** When the first of its failures was: ISO 8601, UTC. */
  readonly since: string | null;
  /** How often it has ended, one time after the other. */
  readonly failures: number;
  /** Why, in words without a path or an address. */
  readonly why: string | null;
}

/** One line of the status. */
export type StatusEntry = ReadModelStatus | ProcessManagerStatus | FailingPart;

/** Seconds as they are told: to a tenth. */
export function inTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
