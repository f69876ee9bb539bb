/** Steps at the log's end: swap readers over to a build, or leave them on the build that they use. */
import { pause } from '../../lib/async/pause.js';
import { type LeaderRun, nextSteps, takeOut } from './leaderRun.js';
import { endOrphaned } from './orphanedModels.js';
import { ensureCollection, enter, type RunningBuild } from './runningBuild.js';
import { isPreviousVersion } from './runningBuilds.js';
import { swapIn } from './swap.js';
import { dropUnused, TIDY_MS, whileKept } from './unusedBuilds.js';

const GONE_MS = 20;

/**
 * Carries out the steps of builds at the log's end. Nothing may write to their collections during the call.
 * @param aligned builds at the same position as every other running build of their read model; default all
 */
export async function atLogEnd(
  run: LeaderRun,
  builds: readonly RunningBuild[],
  aligned: readonly RunningBuild[] = builds,
): Promise<void> {
  const own = new Set(aligned);
  const places = new Map(aligned.map((build) => [build, build.place]));
  for (const build of builds) if (build.state === 'catching-up') enter(build, 'ready');
  for (const build of aligned) build.place = 'log end';
  try {
    for (;;) {
      // Other builds' feeds carry out their own steps.
      const step = nextSteps(run)
        .filter((one) => one.do === 'settle' || one.do === 'swap in')
        .find(({ build }) => own.has(build));
      if (step === undefined) return;
      if (step.do === 'settle') await settle(run, step.build);
      else await swap(run, step.build);
    }
  } finally {
    for (const [build, place] of places) build.place = place;
  }
}

async function settle(run: LeaderRun, build: RunningBuild): Promise<void> {
  await ensureCollection(run.store, build);
  build.caughtUp = true;
  if (build.state === 'serving') await serves(run, build, undefined);
}

async function swap(run: LeaderRun, build: RunningBuild): Promise<void> {
  const { builds, inUse, swaps } = run;
  const { name, version } = build.projection;
  swaps.started += 1;
  const { left, refused } = await swapIn(build, builds, inUse.get(name), run).finally(() => (swaps.ended += 1));
  if (refused === true) return takeOut(run, build);
  inUse.set(name, version);
  return serves(run, build, left);
}

async function serves(run: LeaderRun, build: RunningBuild, left: RunningBuild | undefined): Promise<void> {
  const { name } = build.projection;
  run.inBackground(async () => (left === undefined ? tidyLater(run, name) : retire(run, left)));
  if (run.orphaned.delete(name)) await endOrphaned(run.store, name);
}

/**
 * Keeps a build up to date while readers leave it, which takes a second. A previous release's build is kept up to date
 * for as long as that release can be restored.
 */
export async function retire(run: LeaderRun, build: RunningBuild): Promise<void> {
  const { builds, store, projections, retireMs, over } = run;
  await pause(retireMs, over);
  if (isPreviousVersion(build, projections)) await whileKept(store, build, over);
  if (over.aborted) return;
  // A rollback may have made the build ready again.
  if (build.state === 'retiring') takeOut(run, build);
  while (!over.aborted && build.state === 'gone' && builds.includes(build)) await pause(GONE_MS, over);
  await dropUnused(build.projection.name, builds, run);
}

async function tidyLater(run: LeaderRun, name: string): Promise<void> {
  await pause(run.retireMs, run.over);
  if (!run.over.aborted) await dropUnused(name, run.builds, run);
}

export async function tidyRegularly(run: LeaderRun): Promise<void> {
  const { builds, projections, over } = run;
  while (!over.aborted) {
    await pause(TIDY_MS, over);
    for (const { name } of projections) if (!over.aborted) await dropUnused(name, builds, run);
  }
}
