/**
 * Rebuilds a read model while it is in use. A new build is made, from its checkpoint if it was started before, and the
 * leading process swaps it in (docs/read-models.md). A lease allows one builder at a time.
 */
import { pause } from '../../../lib/async/pause.js';
import type { ReadStore, StoredRecord } from '../../../ports/readStore.js';
import type { Projection } from '../projection.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import { asBuild, buildOf, buildText, otherReleaseText, sameVersion } from '../buildNumbers.js';
import { nextNumber } from '../ownBuild.js';
import { previousBuildOf } from '../previousBuilds.js';
import { putRebuild, REBUILDS, rebuildOf, type Rebuild } from '../rebuildRecord.js';
import { FEW_DIRTY, runFeed } from '../feed.js';
import { emptyIfInvalid } from '../invalidBuilds.js';
import { type Lease, LeaseHeldError, type Pace, paced, seizeLease } from '../../coordination/index.js';
import { finishSwap } from '../swap.js';
import { dropBuild } from '../unusedBuilds.js';
import { openBuild } from '../runningBuild.js';
import { LeaseLostError } from '../writer.js';
import { MaintenanceRefusedError, type Remedy } from './refused.js';
import { progressOf, type RebuildProgress, putProgress } from './progress.js';

/** How often a builder checks that its build is still requested. */
const TEND_MS = 1_000;

export class RebuildRefusedError extends MaintenanceRefusedError {
  override readonly name = 'RebuildRefusedError';
  /** Whether other work is in progress, so that a later attempt may succeed. */
  readonly busy: boolean;
  constructor(message: string, { busy = false, remedy }: { readonly busy?: boolean; readonly remedy?: Remedy } = {}) {
    super(message, remedy);
    this.busy = busy;
  }
}

export type RebuildDeps = ProjectorProcess;

export interface Asked {
  readonly by: string;
  readonly reason?: string;
  /** Time of the request, ISO 8601, UTC, milliseconds. */
  readonly at: string;
}

export interface BuildOptions {
  readonly pace: Pace;
  /** Stops the build; the next builder continues from its checkpoint. */
  readonly signal: AbortSignal;
  /** Called about once a second, and at the end. */
  readonly onProgress?: (progress: RebuildProgress) => void;
}

const leaseOf = (name: string): string => `rebuild/${name}`;

/** @throws RebuildRefusedError that names the holder */
export async function seizeBuildLease(
  { store, logger, holder, leaseMs }: RebuildDeps,
  name: string,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  try {
    return await seizeLease(store.records, leaseOf(name), { holder, signal, logger, ttlMs: leaseMs });
  } catch (error) {
    if (!(error instanceof LeaseHeldError)) throw error;
    throw new RebuildRefusedError(`${name} is being rebuilt by ${error.holder}: wait for it, or abort it`, {
      busy: true,
      remedy: 'abort',
    });
  }
}

/**
 * Records a rebuild, or continues the one in progress. `attended`: the caller builds it.
 * @returns the record, and whether it existed before
 * @throws RebuildRefusedError
 */
export async function requestRebuild(
  store: ReadStore,
  projection: Projection,
  { by, reason, at }: Asked,
  attended: boolean,
): Promise<{ readonly record: StoredRecord<Rebuild>; readonly resumed: boolean }> {
  const { name, version } = projection;
  for (;;) {
    const { from, existing } = await checkRebuild(store, projection);
    if (
      existing !== undefined &&
      sameVersion(existing.value.target, version) &&
      (existing.value.state === 'ready' || existing.value.state === 'swapping')
    )
      return { record: existing, resumed: true };
    if (existing?.value.state === 'building' && sameVersion(existing.value.target, version)) {
      const value: Rebuild = { ...existing.value, attended };
      const put = await putRebuild(store, name, value, existing.version);
      if (put !== undefined) return { record: { ...existing, value, version: put }, resumed: true };
      continue;
    }
    if (existing !== undefined) {
      // The existing rebuild is half aborted, or of another version.
      await discardRebuild(store, name, existing);
      continue;
    }
    const target = await nextNumber(store, projection);
    const value: Rebuild = {
      target,
      from,
      kind: 'rebuild',
      state: 'building',
      attended,
      by,
      at,
      ...(reason === undefined ? {} : { reason }),
    };
    const put = await putRebuild(store, name, value, 0);
    if (put !== undefined) return { record: { key: REBUILDS + name, value, version: put }, resumed: false };
  }
}

/**
 * @returns the number of the build in use, and the rebuild in progress
 * @throws RebuildRefusedError if a rebuild can't start now
 */
export async function checkRebuild(
  store: ReadStore,
  { name, version }: Projection,
): Promise<{ readonly from: number | undefined; readonly existing: StoredRecord<Rebuild> | undefined }> {
  const from = await store.active(name);
  if (from !== undefined && buildOf(from).version !== version) {
    throw new RebuildRefusedError(
      otherReleaseText(name, from, version, 'wait: the projector builds that version and swaps it in by itself'),
      { remedy: 'status' },
    );
  }
  const existing = await rebuildOf(store, name);
  if (existing?.value.kind === 'rollback' && sameVersion(existing.value.target, version))
    throw new RebuildRefusedError(
      `${name} is being rolled back, as ${existing.value.by} asked at ${existing.value.at}: wait for it, or abort it`,
      { busy: true, remedy: 'abort' },
    );
  return { from, existing };
}

/** Ends a rebuild that has no builder, and drops its build. */
async function discardRebuild(
  store: ReadStore,
  name: string,
  { key, value, version }: StoredRecord<Rebuild>,
): Promise<void> {
  if ((await store.active(name)) === value.target) return finishSwap(store, name, value);
  if (value.kind === 'rebuild') await dropBuild(store, name, value.target);
  await store.records.delete(key, version);
  return undefined;
}

/**
 * @returns `aborted`: the build is no longer requested, and nothing is written; `stopped`: by the signal
 * @throws LeaseLostError
 */
export async function build(
  deps: RebuildDeps,
  projection: Projection,
  target: number,
  lease: Lease,
  { pace, signal, onProgress }: BuildOptions,
): Promise<'ready' | 'aborted' | 'stopped'> {
  const { store } = deps;
  const { name } = projection;
  const made = asBuild(projection, target);
  await emptyIfInvalid({ ...deps, lease }, made);
  const running = await openBuild(store, made);
  const progress = await progressOf(deps, name, running);
  const unwanted = new AbortController();
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, lease.lost, unwanted.signal]);
  const wanted = async (): Promise<StoredRecord<Rebuild> | undefined> => {
    const record = await rebuildOf(store, name);
    return record?.value.target === target && record.value.state === 'building' ? record : undefined;
  };
  const report = async (): Promise<void> => {
    onProgress?.(progress.now());
    await putProgress(store, name, target, progress);
  };

  async function tend(): Promise<void> {
    while (!ended.signal.aborted && !stop.aborted) {
      await pause(TEND_MS, AbortSignal.any([ended.signal, stop]));
      try {
        if ((await wanted()) === undefined) unwanted.abort();
        else if (!ended.signal.aborted) await report();
      } catch (error) {
        // An engine that does not answer fails the build itself, so the failure is only logged here.
        deps.logger.debug({ err: error, projection: name }, 'could not store how far the rebuild is');
      }
    }
  }

  const tending = tend();
  try {
    const slowed = paced({ events: progress.counted, store }, pace);
    await runFeed([running], {
      ...slowed,
      lease,
      signal: stop,
      caughtUp: async () => undefined,
      untilCaughtUp: true,
      endOnAltered: true,
      maxDirty: FEW_DIRTY,
    });
  } finally {
    ended.abort();
    await tending;
  }
  if (unwanted.signal.aborted) return 'aborted';
  if (lease.lost.aborted) throw new LeaseLostError();
  if (signal.aborted) return 'stopped';
  await report();
  const record = await wanted();
  if (
    record === undefined ||
    (await putRebuild(store, name, { ...record.value, state: 'ready' }, record.version)) === undefined
  )
    return 'aborted';
  return 'ready';
}

/**
 * Requests that the leading process swap the previous build in.
 * @returns the number of that build
 * @throws RebuildRefusedError
 */
export async function requestRollback(
  store: ReadStore,
  { name, version }: Projection,
  { by, reason, at }: Asked,
): Promise<number> {
  const existing = await rebuildOf(store, name);
  if (existing?.value.kind === 'rollback') return existing.value.target;
  if (existing !== undefined)
    throw new RebuildRefusedError(
      `${name} is being rebuilt, as ${existing.value.by} asked at ${existing.value.at}: wait for it, or abort it`,
      { busy: true, remedy: 'abort' },
    );
  const [from, previous] = [await store.active(name), await previousBuildOf(store, name)];
  if (previous !== undefined && from !== previous.number && !(await store.versions(name)).includes(previous.number)) {
    throw new RebuildRefusedError(
      `${name}: no previous build is kept any more: ${buildText(previous.number)} was dropped, since its time was over or a person was erased`,
    );
  }
  if (previous === undefined || from === previous.number) {
    throw new RebuildRefusedError(`${name}: no previous build is kept, so there is nothing to go back to`);
  }
  if (from !== undefined && !sameVersion(from, version) && sameVersion(previous.number, version)) {
    throw new RebuildRefusedError(
      `${name}: ${buildText(from)} is in use, of another release than this program: end the processes of that release and start those of this one, which then takes the previous build, ${buildText(previous.number)}, into use again`,
    );
  }
  if (!sameVersion(previous.number, version) || from === undefined || !sameVersion(from, version)) {
    throw new RebuildRefusedError(
      `${name}: the previous build is ${buildText(previous.number)}, this program makes version ${version}: go back to that program, and it takes its own into use again`,
    );
  }
  const rollback: Rebuild = {
    target: previous.number,
    from,
    kind: 'rollback',
    state: 'ready',
    attended: false,
    by,
    at,
    ...(reason === undefined ? {} : { reason }),
  };
  if ((await putRebuild(store, name, rollback, 0)) === undefined)
    throw new RebuildRefusedError(`${name}: somebody else began a rebuild in this moment`, {
      busy: true,
      remedy: 'status',
    });
  return previous.number;
}

/**
 * Stops the builder of a rebuild and drops the build; the leading process drops a build that it has taken over.
 * @returns `leaving`: the record still exists
 * @throws RebuildRefusedError if no rebuild is in progress, or the build is in use
 */
export async function abortRebuild(deps: RebuildDeps, name: string, signal: AbortSignal): Promise<'over' | 'leaving'> {
  const { store } = deps;
  for (;;) {
    const record = await rebuildOf(store, name);
    if (record === undefined) throw new RebuildRefusedError(`${name} is not being rebuilt: there is nothing to abort`);
    const { value, version } = record;
    if (value.state === 'swapping' || (await store.active(name)) === value.target) {
      throw new RebuildRefusedError(`${name}: the new build is being swapped in at this moment; roll back afterwards`, {
        busy: true,
        remedy: 'rollback',
      });
    }
    if (value.state === 'leaving') return 'leaving';
    const state = value.state === 'ready' ? 'leaving' : 'aborting';
    if (value.state !== 'aborting' && (await putRebuild(store, name, { ...value, state }, version)) === undefined)
      continue;
    if (state === 'leaving') return 'leaving';
    const lease = await waitForLease(deps, name, signal);
    if (lease === undefined) return 'leaving';
    try {
      const marked = await rebuildOf(store, name);
      if (marked?.value.state === 'aborting') await discardRebuild(store, name, marked);
    } finally {
      await lease.release();
    }
    return 'over';
  }
}

/** Waits until the builder releases its lease: it notices within a second that its build is no longer requested. */
async function waitForLease(deps: RebuildDeps, name: string, signal: AbortSignal): Promise<Lease | undefined> {
  while (!signal.aborted) {
    try {
      return await seizeBuildLease(deps, name, signal);
    } catch (error) {
      if (!(error instanceof RebuildRefusedError)) throw error;
      await pause(TEND_MS / 4, signal);
    }
  }
  return undefined;
}
