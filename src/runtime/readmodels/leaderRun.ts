import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { Lease } from '../coordination/lease.js';
import type { Pace } from '../coordination/pace.js';
import type { LogAnchor } from '../log/logAnchor.js';
import type { FollowerRun } from '../supervision/followers.js';
import { enter } from './buildState.js';
import { type Orders, plan, type Step } from './plan.js';
import type { Projection } from './projection.js';
import type { RunningBuild } from './runningBuild.js';
import type { OpenedBuilds } from './runningBuilds.js';

export interface LeaderOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
  readonly logger: Logger;
  readonly holder: string;
  readonly leaseMs: number | undefined;
  readonly lease: Lease;
  /** Ends the run; folded events are still stored. */
  readonly signal: AbortSignal;
  /** How long a build stays up to date after readers have left it. */
  readonly retireMs: number;
  /** For builds that do not serve. */
  readonly pace: Pace;
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
  /** Called after each change. */
  readonly onBuilds: (builds: readonly RunningBuild[]) => void;
}

export interface LeaderRun extends LeaderOptions, OpenedBuilds {
  /** Kept by other processes until this one's version serves. */
  readonly orphaned: Set<string>;
  /** At the last look. */
  asked: Pick<Orders, 'rebuilds' | 'repairs'>;
  readonly opening: Set<string>;
  /** Each ends the own feed of a rebuild. */
  readonly stops: Map<RunningBuild, AbortController>;
  /** Caught up, and about to join the common feed. */
  readonly arrived: RunningBuild[];
  /** Of the common feed. */
  turn: AbortController;
  readonly swaps: { started: number; ended: number };
  /** The last folded event, until it is stored as the log's anchor. */
  anchor: LogAnchor | undefined;
  readonly over: AbortSignal;
  /** Ends the run; its memory is void. */
  end(): void;
  /** In the background; the first failure ends the run. */
  beside(work: () => Promise<void>): void;
  /** @throws the first failure of background work */
  ended(): Promise<void>;
}

export function newRun(options: LeaderOptions, opened: OpenedBuilds, orphaned: Set<string>): LeaderRun {
  const ending = new AbortController();
  const over = AbortSignal.any([options.signal, ending.signal]);
  // Each retiring build adds a listener.
  setMaxListeners(0, over);
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  return {
    ...options,
    ...opened,
    orphaned,
    asked: { rebuilds: new Map(), repairs: [] },
    opening: new Set(),
    stops: new Map(),
    arrived: [],
    turn: new AbortController(),
    swaps: { started: 0, ended: 0 },
    anchor: undefined,
    over,
    end: () => ending.abort(),
    beside(work) {
      const one = work().then(
        () => void running.delete(one),
        (error: unknown) => {
          running.delete(one);
          failure ??= { error };
          ending.abort();
        },
      );
      running.add(one);
    },
    async ended() {
      while (running.size > 0) await Promise.all(running);
      if (failure !== undefined) throw failure.error;
    },
  };
}

export function nextSteps(run: LeaderRun): Step<RunningBuild>[] {
  const { builds, inUse, opening, asked, projections } = run;
  const versions = new Map(projections.map(({ name, version }) => [name, version]));
  return plan(builds, { inUse, versions, opening, ...asked });
}

export function addBuild(run: LeaderRun, build: RunningBuild): void {
  run.builds.push(build);
  showBuilds(run);
}

/** For a build that no feed writes to. */
export function removeBuild(run: LeaderRun, build: RunningBuild): void {
  const at = run.builds.indexOf(build);
  if (at !== -1) run.builds.splice(at, 1);
  run.stops.delete(build);
  showBuilds(run);
}

/** As soon as no feed writes to the build. */
export function takeOut(run: LeaderRun, build: RunningBuild): void {
  enter(build, 'gone');
  run.stops.get(build)?.abort();
  run.turn.abort();
}

export function showBuilds({ builds, logger, onBuilds }: LeaderRun): void {
  for (const build of builds) {
    build.report ??= ({ documentId, stream, type, position, cause }) =>
      logger.warn(
        { projection: build.checkpoint, documentId, stream, type, position, cause },
        'projector: a document is quarantined: it answers 503 until it is rebuilt',
      );
  }
  onBuilds([...builds]);
}
