/**
 * The leading projector: a loop around `plan.ts`. Builds that lag catch up on feeds of their own; the others share a
 * common feed, which runs in turns. Between two turns everything is stored and nothing is written: then builds come and
 * go, and repairs are made.
 */
import { deferred } from '../../lib/async/deferred.js';
import { type FeedOptions, runFeed } from './feed.js';
import { carryOut } from './maintenance/repairOrders.js';
import { catchUp } from './catchUp.js';
import { lookForOrders } from './leaderOrders.js';
import { type LeaderOptions, type LeaderRun, newRun, nextSteps, removeBuild, showBuilds } from './leaderRun.js';
import { atLogEnd, retire, tidyRegularly } from './logEnd.js';
import { settleOrphaned } from './orphanedModels.js';
import { groupsByPosition, openBuilds } from './runningBuilds.js';

/** @throws any failure: the builds in memory are invalid then, and the next run continues from the checkpoints */
export async function runAsLeader(options: LeaderOptions): Promise<void> {
  const opened = await openBuilds(options, options.projections);
  const run = newRun(options, opened, await settleOrphaned(options, opened));
  showBuilds(run);
  const { builds, inUse, over } = run;
  const last = builds.filter(({ projection, state }) => projection.last === true && state === 'catching-up');
  const [first = [], ...behind] = groupsByPosition(builds.filter((build) => !last.includes(build)));
  const together = deferred<void>();
  over.addEventListener('abort', () => together.resolve());
  // The lease was lost, or the projector closed, while the builds were opened.
  if (over.aborted) together.resolve();
  const anyServes = [...inUse.values()].some((number) => number !== undefined);
  for (const group of behind) {
    const slowed = anyServes && group.every(({ state }) => state !== 'serving');
    run.inBackground(async () => catchUp(run, group, { until: over, slowed }));
  }
  for (const group of groupsByPosition(last))
    run.inBackground(async () => {
      await together.promise;
      if (!over.aborted) await catchUp(run, group, { until: over, slowed: true });
    });
  run.inBackground(async () => lookForOrders(run));
  run.inBackground(async () => tidyRegularly(run));
  for (const build of builds) if (build.state === 'retiring') run.inBackground(async () => retire(run, build));
  run.arrived.push(...first);
  run.inBackground(async () => followTogether(run, together.resolve));
  await run.ended();
}

async function followTogether(run: LeaderRun, onCaughtUp: () => void): Promise<void> {
  const { events, store, lease, builds, health, over } = run;
  while (!over.aborted) {
    run.turn = new AbortController();
    await betweenTurns(run);
    const together = builds.filter(({ place }) => place === 'together');
    await runFeed(together, {
      events,
      store,
      lease,
      async caughtUp() {
        await atLogEnd(run, together);
        health.well();
        onCaughtUp();
      },
      signal: AbortSignal.any([over, run.turn.signal]),
      onFolded: (event) => (run.anchor = event),
      onTrouble: health.onTrouble,
      gatherMs: run.gatherMs,
    } satisfies FeedOptions);
  }
}

async function betweenTurns(run: LeaderRun): Promise<void> {
  const { builds, arrived, logger } = run;
  for (const build of arrived.splice(0)) build.place = 'together';
  for (const build of builds.slice()) if (build.place === 'together' && build.state === 'gone') removeBuild(run, build);
  for (const step of nextSteps(run)) {
    if (step.do !== 'repair') continue;
    const { build, order } = step;
    await carryOut(build, order, run);
    run.requested = { ...run.requested, repairs: run.requested.repairs.filter(({ key }) => key !== order.key) };
    logger.info(
      { projection: build.checkpoint, documents: order.value.documents.length },
      'projector: an order to repair documents was dealt with',
    );
  }
}
