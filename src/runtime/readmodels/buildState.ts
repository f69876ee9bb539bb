/** The life of a build in the leading process: docs/read-models.md explains it. */
import type { Position } from '../../ports/eventStore.js';
import type { Projection } from './projection.js';

/**
 * `catching-up`: on the way to the log's end. `ready`: it has been there, and is to serve. `serving`: readers use it.
 * `retiring`: readers have left it; it is kept up to date for a while. `gone`: it is being taken out of its feed.
 */
export type BuildState = 'catching-up' | 'ready' | 'serving' | 'retiring' | 'gone';

/** What the plan knows of a build. */
export interface PlannedBuild {
  readonly projection: Pick<Projection, 'name' | 'version'>;
  readonly state: BuildState;
  /** A rebuild or rollback asked for it: it serves only if that is still wanted. */
  readonly requested: boolean;
  /** Nothing is left to do for it at the log's end. */
  readonly caughtUp: boolean;
  /** Everything up to here is stored. */
  readonly stored: Position | undefined;
  /**
   * `apart`: on a feed of its own; `together`: on the common feed; `log end`: everything up to the log's end is stored,
   * and nothing is written until the steps of this moment are done.
   */
  readonly place: 'apart' | 'together' | 'log end';
}

const NEXT: Readonly<Record<BuildState, readonly BuildState[]>> = {
  'catching-up': ['ready', 'gone'],
  ready: ['serving', 'gone'],
  serving: ['retiring'],
  // A rollback wants it back, or nothing else serves.
  retiring: ['ready', 'gone'],
  gone: [],
};

/** Changes the state. @throws Error where the one can't follow on the other */
export function enter(build: { state: BuildState; readonly checkpoint: string }, state: BuildState): void {
  if (!NEXT[build.state].includes(state))
    throw new Error(`${build.checkpoint} is ${build.state}: it can't be ${state}`);
  build.state = state;
}
