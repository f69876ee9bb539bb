import { setMaxListeners } from 'node:events';
import type { Lease, Pace } from '../coordination/index.js';
import type { ReadOptions } from '../../ports/eventStore.js';
import type { LogAnchor } from '../log/logAnchor.js';
import type { FollowerRun } from '../supervision/followers.js';
import { type Orders, plan, type Step } from './plan.js';
import type { Projection } from './projection.js';
import type { ProjectorProcess } from './projectorProcess.js';
import { enter, type RunningBuild } from './runningBuild.js';
import type { OpenedBuilds } from './runningBuilds.js';

export interface LeaderOptions extends ProjectorProcess {
  readonly projections: readonly Projection[];
  readonly lease: Lease;
  /** Ends the run; folded events are still stored. */
  readonly signal: AbortSignal;
  /** How long a build stays up to date after readers have left it. */
  readonly retireMs: number;
  /** Milliseconds between two batches of the common feed at the log's end, as in `ReadOptions`. */
  readonly gatherMs?: ReadOptions['gatherMs'];
  /** Slows builds that do not serve. */
  readonly pace: Pace;
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
  /** Called after each change of the builds. */
  readonly onBuilds: (builds: readonly RunningBuild[]) => void;
}

export interface LeaderRun extends LeaderOptions, OpenedBuilds {
  /** Read models that other processes keep up to date until this one's version serves. */
  readonly orphaned: Set<string>;
  /** Rebuilds, rollbacks and repairs that were requested at the last poll. */
  requested: Pick<Orders, 'rebuilds' | 'repairs'>;
  readonly opening: Set<string>;
  /** Aborts the separate feed of a rebuild that catches up, by build. */
  readonly stops: Map<RunningBuild, AbortController>;
  /** Builds that have caught up, and join the common feed next. */
  readonly arrived: RunningBuild[];
  /** The present turn of the common feed. */
  turn: AbortController;
  readonly swaps: { started: number; ended: number };
  /** The last folded event, until it is stored as the log's anchor. */
  anchor: LogAnchor | undefined;
  readonly over: AbortSignal;
  /** Ends the run, whose builds in memory are then invalid. */
  end(): void;
  /** Runs work in the background; its first failure ends the run. */
  inBackground(work: () => Promise<void>): void;
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
    requested: { rebuilds: new Map(), repairs: [] },
    opening: new Set(),
    stops: new Map(),
    arrived: [],
    turn: new AbortController(),
    swaps: { started: 0, ended: 0 },
    anchor: undefined,
    over,
    end: () => ending.abort(),
    inBackground(work) {
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
  const { builds, inUse, opening, requested, projections } = run;
  const versions = new Map(projections.map(({ name, version }) => [name, version]));
  return plan(builds, { inUse, versions, opening, ...requested });
}

export function addBuild(run: LeaderRun, build: RunningBuild): void {
  run.builds.push(build);
  showBuilds(run);
}

/** Removes a build at once. The caller ensures that no feed writes to it any more. */
export function removeBuild(run: LeaderRun, build: RunningBuild): void {
  const at = run.builds.indexOf(build);
  if (at !== -1) run.builds.splice(at, 1);
  run.stops.delete(build);
  showBuilds(run);
}

/** Removes a build as soon as no feed writes to it. */
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
