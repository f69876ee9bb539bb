import type { Logger } from 'pino';
import { systemMs } from '../../lib/world.js';
import type { ReadStore } from '../../ports/readStore.js';
import { sameVersion } from './buildNumbers.js';
import { keptRelease, putPreviousBuild } from './previousBuilds.js';
import { putRebuild, rebuildOf, type Rebuild } from './rebuildRecord.js';
import type { Lease } from '../coordination/index.js';
import { ensureCollection, enter, type RunningBuild } from './runningBuild.js';
import { LeaseLostError } from './writer.js';

/** Milliseconds that a replaced build is retained: long enough for the next shift to roll back. */
const KEEP_PREVIOUS_MS = 86_400_000;

export interface SwapDeps {
  readonly store: ReadStore;
  readonly lease: Pick<Lease, 'held'>;
  readonly logger: Logger;
}

/** Another process has led in between. Nothing was swapped. */
export class SwapOutdatedError extends Error {
  override readonly name = 'SwapOutdatedError';
  constructor(name: string) {
    super(`${name}: readers use another build than this process knew of`);
  }
}

/**
 * Makes readers use the build. It must be at the same position as the one in use, with no writes during the swap.
 * @param from number of the build in use
 * @returns `left`: the build that readers leave, if it runs here; `refused`: the rebuild was aborted, or another
 * process ended it
 * @throws LeaseLostError, SwapOutdatedError, UnavailableError
 */
export async function swapIn(
  build: RunningBuild,
  builds: readonly RunningBuild[],
  from: number | undefined,
  { store, lease, logger }: SwapDeps,
): Promise<{ readonly left?: RunningBuild; readonly refused?: true }> {
  const { name, version } = build.projection;
  await ensureCollection(store, build);
  const record = await rebuildOf(store, name);
  const target = record?.value.target === version ? record : undefined;
  if (build.requested) {
    const wanted = target !== undefined && (target.value.state === 'ready' || target.value.state === 'swapping');
    const noted =
      wanted && (await putRebuild(store, name, { ...target.value, state: 'swapping' }, target.version)) !== undefined;
    // An earlier leader, cut off during a swap, may have completed it.
    if (!noted && (await store.active(name)) !== version) return { refused: true };
  }
  if (!lease.held) throw new LeaseLostError();
  // The record comes before the swap, since a build that is not recorded as previous is dropped.
  if (from !== undefined && !sameVersion(from, version))
    await putPreviousBuild(store, name, { number: from, until: systemMs() + KEEP_PREVIOUS_MS });
  if (!(await store.activate(name, version, { expected: from ?? 0 }))) throw new SwapOutdatedError(name);
  const left = builds.find(({ projection, state }) => projection.name === name && state === 'serving');
  if (left !== undefined) enter(left, 'retiring');
  if (build.state === 'retiring') enter(build, 'ready');
  enter(build, 'serving');
  build.requested = false;
  build.caughtUp = true;
  logger.info({ projection: build.checkpoint, position: build.stored }, 'projection caught up and in use');
  if (target !== undefined) await finishSwap(store, name, target.value);
  return left === undefined ? {} : { left };
}

/** Deletes a rebuild's record and retains the replaced build. The record of a later rebuild is not deleted. */
export async function finishSwap(store: ReadStore, name: string, { from, target }: Rebuild): Promise<void> {
  const record = await rebuildOf(store, name);
  if (record?.value.target !== target) return;
  if (from !== undefined && sameVersion(from, target)) {
    // The last release stays available after a rebuild.
    const release = await keptRelease(store, name, target);
    const kept = release === undefined ? {} : { release: { number: release.number, until: release.until } };
    await putPreviousBuild(store, name, { number: from, until: systemMs() + KEEP_PREVIOUS_MS, ...kept });
  }
  await store.records.delete(record.key, record.version);
}
