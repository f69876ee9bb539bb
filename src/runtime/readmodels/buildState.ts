/** States of a build and their transitions (docs/read-models.md). */
import type { Position } from '../../ports/eventStore.js';
import type { Projection } from './projection.js';

/**
 * `catching-up`: has not reached the log's end. `ready`: has reached it, and is to serve. `serving`: readers use it.
 * `retiring`: readers have left it; it is kept up to date for a while. `gone`: leaves its feed.
 */
export type BuildState = 'catching-up' | 'ready' | 'serving' | 'retiring' | 'gone';

export interface PlannedBuild {
  readonly projection: Pick<Projection, 'name' | 'version'>;
  readonly state: BuildState;
  /** Whether a rebuild or rollback requested the build, and may still be aborted. */
  readonly requested: boolean;
  /** Whether nothing is left to do for the build at the log's end. */
  readonly caughtUp: boolean;
  /** The stored checkpoint. */
  readonly stored: Position | undefined;
  /**
   * `apart`: on a feed of its own; `together`: on the common feed; `log end`: nothing is written during the present
   * steps.
   */
  readonly place: 'apart' | 'together' | 'log end';
}

const NEXT: Readonly<Record<BuildState, readonly BuildState[]>> = {
  'catching-up': ['ready', 'gone'],
  ready: ['serving', 'gone'],
  serving: ['retiring'],
  // `ready` follows for a rollback, or when no other build serves.
  retiring: ['ready', 'gone'],
  gone: [],
};

/** @throws Error for a transition that is not allowed */
export function enter(build: { state: BuildState; readonly checkpoint: string }, state: BuildState): void {
  if (!NEXT[build.state].includes(state))
    throw new Error(`${build.checkpoint} is ${build.state}: it can't be ${state}`);
  build.state = state;
}
