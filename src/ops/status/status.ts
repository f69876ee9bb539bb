import type { Position } from '../../ports/eventStore.js';

/** Bounds for counting the events of a lag. */
export const COUNT = { count: 20_000, withinMs: 300 };

/** Progress of a fold of the log. */
export interface LogProgress {
  /** Position up to which the log was folded; null: nothing yet. */
  readonly position: Position | null;
  /** A stored position that is not in the log, shortened: it counts as absent. Null: all is well. */
  readonly invalid_position: string | null;
  /** Number of events of its types, up to the log's end, that are not folded yet. */
  readonly lag_events: number;
  /** Whether `lag_events` is exact; false where there are at least so many. */
  readonly lag_exact: boolean;
  /** Age in seconds of the oldest event that is not folded yet; null where it was not found in time. */
  readonly lag_seconds: number | null;
}

/** Status of a read model or process manager. Times are ISO 8601, UTC. */
interface CommonStatus extends LogProgress {
  readonly name: string;
  /** Events of its types folded a second. */
  readonly per_second: number;
  /** The process that works on it; null: none does. */
  readonly holder: string | null;
  /** The last process that worked on it, where none does now. */
  readonly last_holder: LastHolder | null;
}

export interface LastHolder {
  readonly process: string;
  /** Time of the last renewal, by the process's own clock; null: unknown. */
  readonly since: string | null;
  /** Whether the process still lives: its disk may be full, or it may be frozen. Null: unknown on this machine. */
  readonly lives: boolean | null;
}

export interface ReadModelStatus extends CommonStatus {
  readonly kind: 'projection';
  readonly version: number;
  /** Number of earlier builds of this version. */
  readonly build: number;
  /**
   * Whether readers use this version. Otherwise no process works on it (`holder`) until a process of this release
   * leads.
   */
  readonly in_use: boolean;
  readonly quarantined: number;
  readonly rebuild: RebuildStatus | null;
  /** The build in use, where it is of another release; null: this one is in use, or none was ever built. */
  readonly served: ServedBuildStatus | null;
  readonly previous: PreviousBuildStatus | null;
  /** Build of the release before, which is retained as well where a rebuild followed a deployment. */
  readonly previous_release: PreviousBuildStatus | null;
}

/** A build that is retained for a rollback, and the end of that time. */
export interface PreviousBuildStatus {
  readonly version: number;
  readonly build: number;
  readonly until: string;
}

export interface ServedBuildStatus extends LogProgress {
  readonly version: number;
  readonly build: number;
  /** The process that keeps it up to date; null: none does, so answers grow old. */
  readonly holder: string | null;
}

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

export interface ProcessManagerStatus extends CommonStatus {
  readonly kind: 'process';
  /** Number of pieces of work in progress, including work that waits for its next attempt. */
  readonly in_flight: number;
  readonly parked: number;
}

export interface FailingPart {
  readonly kind: 'part';
  readonly name: string;
  readonly process: string;
  /** Time of the first failure. */
  readonly since: string | null;
  /** Number of failures in a row. */
  readonly failures: number;
  /** Cause of the failure, without a path or an address. */
  readonly why: string | null;
}

export type StatusEntry = ReadModelStatus | ProcessManagerStatus | FailingPart;
