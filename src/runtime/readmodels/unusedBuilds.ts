import { pause } from '../../lib/async/pause.js';
import { systemMs } from '../../lib/world.js';
import type { ReadStore } from '../../ports/readStore.js';
import { rankOf, sameVersion } from './buildNumbers.js';
import { retainedPreviousBuilds } from './previousBuilds.js';
import { rebuildOf } from './rebuildRecord.js';
import { checkpointName } from './projection.js';
import { forgetQuarantined } from './quarantine.js';
import { isRunning, type RunningBuild } from './runningBuild.js';
import type { SwapDeps } from './swap.js';

export const TIDY_MS = 600_000;

export async function dropBuild(store: ReadStore, name: string, number: number): Promise<void> {
  await store.drop({ name, version: number, indexes: [] });
  await forgetQuarantined(store.records, { name, version: number });
}

/** Waits while a previous release's build is retained, so that this release can be restored without a gap. */
export async function whileKept(store: ReadStore, build: RunningBuild, signal: AbortSignal): Promise<void> {
  const { name, version } = build.projection;
  while (!signal.aborted && build.state === 'retiring') {
    const retained = (await retainedPreviousBuilds(store, name)).find(({ number }) => number === version);
    if (retained === undefined) return;
    await pause(Math.min(TIDY_MS, Math.max(0, retained.until - systemMs()) + 1), signal);
  }
}

/**
 * Drops builds of a read model that are not run here, in use, being built or retained, except later versions than this
 * code's. Never throws: a later call tries again.
 */
export async function dropUnused(
  name: string,
  builds: readonly RunningBuild[],
  { store, lease, logger }: SwapDeps,
): Promise<void> {
  try {
    const own = builds.filter(({ projection }) => projection.name === name).map(({ projection }) => projection.version);
    const newest = Math.max(...own.map(rankOf));
    // The versions are read first, so that builds opened later are not dropped.
    const stored = await store.versions(name);
    const [active, previous, rebuild] = await Promise.all([
      store.active(name),
      retainedPreviousBuilds(store, name),
      rebuildOf(store, name),
    ]);
    const retained = new Set([
      ...own,
      active,
      rebuild?.value.target,
      rebuild?.value.from,
      ...previous.map(({ number }) => number),
    ]);
    for (const number of stored) {
      if (retained.has(number) || (rankOf(number) > newest && !own.some((one) => sameVersion(one, number)))) continue;
      // The drop of a large build takes a while: a rollback may have been requested, and its build opened, since.
      if ((await rebuildOf(store, name))?.value.target === number || isRunning(builds, name, number)) continue;
      if (!lease.held) return;
      const projection = checkpointName({ name, version: number });
      try {
        await dropBuild(store, name, number);
        logger.info({ projection }, 'projector: dropped a build that nobody uses');
      } catch (error) {
        logger.warn({ err: error, projection }, 'projector: an old version could not be dropped yet');
      }
    }
  } catch (error) {
    logger.warn({ err: error, projection: name }, 'projector: old versions could not be looked for');
  }
}
