import type { Position } from '../../ports/eventStore.js';

/** Bounds for counting the events of a lag. */
export const COUNT = { count: 20_000, withinMs: 300 };

/** Progress of a fold of the log. */
export interface LogProgress {
  /** Folded up to here; null: nothing yet. */
  readonly position: Position | null;
  /** A stored position that is not in the log, shortened: it counts as absent. Null: all is well. */
  readonly invalid_position: string | null;
  /** Events of its types up to the log's end, not folded yet. */
  readonly lag_events: number;
  /** False: at least so many. */
  readonly lag_exact: boolean;
  /** Age of the oldest of them, seconds; null: not found in time. */
  readonly lag_seconds: number | null;
}

/** Times are ISO 8601, UTC. */
interface CommonStatus extends LogProgress {
  readonly name: string;
  /** Events of its types folded a second. */
  readonly per_second: number;
  /** The process that works on it; null: none does. */
  readonly holder: string | null;
  /** Where no process works on it: the last that did. */
  readonly last_holder: LastHolder | null;
}

export interface LastHolder {
  readonly process: string;
  /** The last renewal, by its own clock; null: unknown. */
  readonly since: string | null;
  /** True: its disk may be full, or it may be frozen; null: unknown on this machine. */
  readonly lives: boolean | null;
}

export interface ReadModelStatus extends CommonStatus {
  readonly kind: 'projection';
  readonly version: number;
  /** How often this version had been built before. */
  readonly build: number;
  /** Readers use it. Otherwise no process works on it (`holder`) until a process of this release leads. */
  readonly in_use: boolean;
  readonly quarantined: number;
  readonly rebuild: RebuildStatus | null;
  /** The build in use, where it is of another release; null: this one is in use, or none was ever built. */
  readonly served: ServedBuildStatus | null;
  readonly previous: PreviousBuildStatus | null;
  /** Where a rebuild followed a deployment: the build of the release before, kept as well. */
  readonly previous_release: PreviousBuildStatus | null;
}

/** A build kept for a rollback, and until when. */
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
  /** Including work that waits for its next attempt. */
  readonly in_flight: number;
  readonly parked: number;
}

export interface FailingPart {
  readonly kind: 'part';
  readonly name: string;
  readonly process: string;
  /** Of the first failure. */
  readonly since: string | null;
  /** Failures in a row. */
  readonly failures: number;
  /** Without a path or an address. */
  readonly why: string | null;
}

export type StatusEntry = ReadModelStatus | ProcessManagerStatus | FailingPart;

export function inTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
