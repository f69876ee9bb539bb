/** Swapping builds in, and dropping those that nobody needs any more. Only the leading projector does either. */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { ReadStore } from '../../ports/readStore.js';
import { checkpointName } from './projection.js';
import {
  buildOf,
  keptPreviousBuilds,
  keptRelease,
  putPreviousBuild,
  putRebuild,
  rankOf,
  rebuildOf,
  sameVersion,
  type Rebuild,
} from './builds.js';
import type { Lease } from '../coordination/lease.js';
import { forgetQuarantined } from './quarantine.js';
import type { RunningBuild } from './runningBuild.js';
import { LeaseLostError } from './writer.js';

/**
 * How long what was in use before a rebuild, or before a deployment, is kept, in ms: a day, so that the next shift can
 * still go back.
 */
const KEEP_PREVIOUS_MS = 86_400_000;

/** How often it is looked for builds that nobody needs any more, in ms. */
export const TIDY_MS = 600_000;

/** What swapping needs. */
export interface SwapDeps {
  readonly store: ReadStore;
  readonly lease: Pick<Lease, 'held'>;
  readonly logger: Logger;
}

/**
 * Readers use another build than this process knew of: another leads, or has led meanwhile. Nothing was swapped; what
 * is known is void.
 */
export class SwapOutdatedError extends Error {
  override readonly name = 'SwapOutdatedError';
  constructor(name: string) {
    super(`${name}: readers use another build than this process knew of`);
  }
}

/**
 * Lets readers use the build where it is the one they should: the newest of its name that is run, or the target
 * of a rebuild. Both it and the one they use must stand at the same position, and nothing may be written meanwhile.
 * @returns `left`: readers leave that build from now on; `refused`: the rebuild was aborted in the meantime, or ended by
 * another, and readers don't use it.
 * @throws LeaseLostError, SwapOutdatedError, UnavailableError
 */
export async function swapIn(
  build: RunningBuild,
  builds: readonly RunningBuild[],
  { store, lease, logger }: SwapDeps,
): Promise<{ readonly left?: RunningBuild; readonly refused?: true }> {
  const { name, version } = build.projection;
  await store.ensure(build.collection);
  if (build.active === version) {
    build.caughtUp = true;
    return {};
  }
  const record = await rebuildOf(store, name);
  const target = record?.value.target === version ? record : undefined;
  if (build.joins === true) {
    const wanted = target !== undefined && (target.value.state === 'ready' || target.value.state === 'swapping');
    const noted =
      wanted && (await putRebuild(store, name, { ...target.value, state: 'swapping' }, target.version)) !== undefined;
    // An earlier leader that was cut off while it swapped may have come to the end of it since.
    if (!noted && (await store.active(name)) !== version) return { refused: true };
  } else if (
    build.active !== undefined &&
    (build.follows === true || builds.some((other) => isNewerVersion(other, build)))
  ) {
    // What readers have left while it was still catching up is kept up to date for a while, and no more.
    build.caughtUp = true;
    return {};
  }
  if (!lease.held) throw new LeaseLostError();
  const left = builds.find(
    (other) => other !== build && other.projection.name === name && other.projection.version === build.active,
  );
  const from = build.active;
  // First: what is not known to be kept is dropped.
  if (from !== undefined && !sameVersion(from, version))
    await putPreviousBuild(store, name, { number: from, until: Date.now() + KEEP_PREVIOUS_MS });
  if (!(await store.activate(name, version, { expected: from ?? 0 }))) throw new SwapOutdatedError(name);
  for (const other of builds) if (other.projection.name === name) other.active = version;
  if (left !== undefined) left.follows = true;
  delete build.follows;
  delete build.joins;
  build.caughtUp = true;
  logger.info({ projection: build.checkpoint, position: build.stored }, 'projection caught up and in use');
  if (target !== undefined) await finishSwap(store, name, target.value);
  return left === undefined ? {} : { left };
}

/**
 * Ends the record of a rebuild that is in use, and keeps what it replaced for a rollback; nothing where another stands
 * there by now.
 * @throws UnavailableError
 */
export async function finishSwap(store: ReadStore, name: string, { from, target }: Rebuild): Promise<void> {
  const record = await rebuildOf(store, name);
  if (record?.value.target !== target) return;
  if (from !== undefined && sameVersion(from, target)) {
    // A rebuild does not take the way back to the last release.
    const release = await keptRelease(store, name, target);
    const kept = release === undefined ? {} : { release: { number: release.number, until: release.until } };
    await putPreviousBuild(store, name, { number: from, until: Date.now() + KEEP_PREVIOUS_MS, ...kept });
  }
  await store.records.delete(record.key, record.version);
}

/**
 * Waits as long as a previous release's build, which readers have left, is to be kept: so long that release can be
 * brought back without a gap. @throws UnavailableError
 */
export async function whileKept(store: ReadStore, build: RunningBuild, signal: AbortSignal): Promise<void> {
  const { name, version } = build.projection;
  while (!signal.aborted && build.follows === true) {
    const kept = (await keptPreviousBuilds(store, name)).find(({ number }) => number === version);
    if (kept === undefined) return;
    await pause(Math.min(TIDY_MS, Math.max(0, kept.until - Date.now()) + 1), signal);
  }
}

function isNewerVersion(other: RunningBuild, build: RunningBuild): boolean {
  return (
    other.projection.name === build.projection.name &&
    buildOf(other.projection.version).version > buildOf(build.projection.version).version
  );
}

/** Drops a build with everything about it. @throws UnavailableError */
export async function dropBuild(store: ReadStore, name: string, number: number): Promise<void> {
  await store.drop({ name, version: number, indexes: [] });
  await forgetQuarantined(store.records, { name, version: number });
}

/**
 * Drops the builds of a projection that are neither run here, nor in use, nor being built, nor kept for a rollback.
 * Those of versions that this code does not know yet are left alone. Never throws: what can't be dropped now is dropped
 * another time.
 */
export async function tidy(
  name: string,
  builds: () => readonly RunningBuild[],
  { store, lease, logger }: SwapDeps,
): Promise<void> {
  try {
    const own = builds()
      .filter((build) => build.projection.name === name)
      .map((build) => build.projection.version);
    const newest = Math.max(...own.map(rankOf));
    // Listed first: one that is begun meanwhile isn't among them, and of one that is the record is there.
    const stored = await store.versions(name);
    const [active, previous, rebuild] = await Promise.all([
      store.active(name),
      keptPreviousBuilds(store, name),
      rebuildOf(store, name),
    ]);
    const kept = new Set([
      ...own,
      active,
      rebuild?.value.target,
      rebuild?.value.from,
      ...previous.map(({ number }) => number),
    ]);
    for (const number of stored) {
      if (kept.has(number) || (rankOf(number) > newest && !own.some((one) => sameVersion(one, number)))) continue;
      if (!lease.held) return;
      try {
        await dropBuild(store, name, number);
        logger.info(
          { projection: checkpointName({ name, version: number }) },
          'projector: dropped a build that nobody uses',
        );
      } catch (error) {
        logger.warn(
          { err: error, projection: checkpointName({ name, version: number }) },
          'projector: an old version could not be dropped yet',
        );
      }
    }
  } catch (error) {
    logger.warn({ err: error, projection: name }, 'projector: old versions could not be looked for');
  }
}
