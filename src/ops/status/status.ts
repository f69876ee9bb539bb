/** The status: how every read model, process manager and failing part stands. */
import type { Position } from '../../ports/eventStore.js';

/** Events behind are counted up to so many, and for so long, in ms. */
export const COUNT = { count: 20_000, withinMs: 300 };

/** How far something is that folds the log. */
export interface LogProgress {
  /** Everything up to here is done; null: nothing yet. */
  readonly position: Position | null;
  /** What is stored in its place and is no place in the log, shortened: it counts as absent. Null: all is well. */
  readonly invalid_position: string | null;
  /** Events that it subscribes to and has not done, up to the log's end. */
  readonly lag_events: number;
  /** False: there may be more. */
  readonly lag_exact: boolean;
  /** Age of the oldest of them, seconds; null: not found in time. */
  readonly lag_seconds: number | null;
}

/** What read models and process managers have in common. Times are ISO 8601, UTC. */
interface CommonStatus extends LogProgress {
  readonly name: string;
  /** Such events that it does a second. */
  readonly per_second: number;
  /** The process that works on it; null: none does. */
  readonly holder: string | null;
  /** Where none does: the process that did last; null: one does, or none ever did. */
  readonly last_holder: LastHolder | null;
}

/** A process that had a lease and does not renew it. */
export interface LastHolder {
  readonly process: string;
  /** When it renewed it last, by its own clock; null: unknown. */
  readonly since: string | null;
  /** Whether it lives: its disk may be full, or it may be frozen; null: unknown on this machine. */
  readonly lives: boolean | null;
}

/** How a read model stands. */
export interface ReadModelStatus extends CommonStatus {
  readonly kind: 'projection';
  readonly version: number;
  /** How often this version had been built before. */
  readonly build: number;
  /** Whether readers use it. Where they don't, no process works on it (`holder`) until one that knows it leads. */
  readonly in_use: boolean;
  /** Documents out of service. */
  readonly quarantined: number;
  readonly rebuild: RebuildStatus | null;
  /** What readers use where it is of another release; null: they use this one, or none has ever been built. */
  readonly served: ServedBuildStatus | null;
  /** The build that can be gone back to, and until when. */
  readonly former: PreviousBuildStatus | null;
  /** Where a rebuild came after a deployment: the build of the release before it, kept beside `former`. */
  readonly former_release: PreviousBuildStatus | null;
}

/** A build that is kept for going back, and until when. */
export interface PreviousBuildStatus {
  readonly version: number;
  readonly build: number;
  readonly until: string;
}

/** What readers use, of another release. */
export interface ServedBuildStatus extends LogProgress {
  readonly version: number;
  readonly build: number;
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
  /** The process that builds; null: none does. */
  readonly holder: string | null;
  readonly events: number | null;
  readonly total: number | null;
  readonly per_second: number | null;
  readonly seconds_left: number | null;
}

/** How a process manager stands. */
export interface ProcessManagerStatus extends CommonStatus {
  readonly kind: 'process';
  /** Work that is under way, or waits for its next attempt. */
  readonly in_flight: number;
  /** Work that was given up and waits for support. */
  readonly parked: number;
}

/** A follower of a process that fails. */
export interface FailingPart {
  readonly kind: 'part';
  readonly name: string;
  /** The process it belongs to. */
  readonly process: string;
  /** When it first failed. */
  readonly since: string | null;
  /** Failures in a row. */
  readonly failures: number;
  /** Why, in words without a path or an address. */
  readonly why: string | null;
}

/** One entry of the status. */
export type StatusEntry = ReadModelStatus | ProcessManagerStatus | FailingPart;

/** Seconds as they are shown: to a tenth. */
export function inTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
