import { paced } from '../coordination/index.js';
import { runFeed } from './feed.js';
import { type LeaderRun, removeBuild } from './leaderRun.js';
import { atLogEnd } from './logEnd.js';
import { ensureCollection, type RunningBuild } from './runningBuild.js';

/**
 * Catches builds up on a feed of their own, then moves them to the common feed. The only build of a read model starts
 * to serve at once. Any other build is swapped in on the common feed, once it is at the same position as the build in
 * use.
 */
export async function catchUp(
  run: LeaderRun,
  group: readonly RunningBuild[],
  { until, slowed }: { readonly until: AbortSignal; readonly slowed: boolean },
): Promise<void> {
  const { events, store, lease, pace, builds, arrived } = run;
  const isAlone = ({ projection: { name } }: RunningBuild): boolean =>
    builds.filter(({ projection }) => projection.name === name).length === 1;
  const caughtUp = async (): Promise<void> => {
    for (const build of group) await ensureCollection(store, build);
    await atLogEnd(run, group, group.filter(isAlone));
  };
  const engines = slowed ? paced({ events, store }, pace) : { events, store };
  await runFeed(group, { ...engines, lease, caughtUp, signal: until, untilCaughtUp: true });
  if (until.aborted) {
    for (const build of group) if (build.state === 'gone') removeBuild(run, build);
    return;
  }
  arrived.push(...group);
  run.turn.abort();
}
