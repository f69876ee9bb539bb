/** Catching builds up on a feed of their own, beside the common one. */
import { paced } from '../coordination/pace.js';
import { runFeed } from './feed.js';
import { type LeaderRun, removeBuild } from './leaderRun.js';
import { atLogEnd } from './logEnd.js';
import type { RunningBuild } from './runningBuild.js';

/**
 * Catches builds up, and brings them to the common feed. A build beside another of its name is swapped in there, once
 * both stand at the same position; any other at once. @throws whatever goes wrong: what is in memory is void then
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
    for (const build of group) await store.ensure(build.collection);
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
