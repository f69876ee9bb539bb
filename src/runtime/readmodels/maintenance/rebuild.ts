/**
 * Rebuilds a read model while it is in use. A new build is made, from its checkpoint if it was started before, and the
 * leading process swaps it in (docs/read-models.md). A lease allows one builder at a time.
 */
import { pause } from '../../../lib/async/pause.js';
import { systemMs } from '../../../lib/world.js';
import type { ReadStore, StoredRecord } from '../../../ports/readStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import type { Projection } from '../projection.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import { asBuild, buildOf, buildText, otherReleaseText, sameVersion } from '../buildNumbers.js';
import { nextNumber } from '../ownBuild.js';
import { previousBuildOf } from '../previousBuilds.js';
import { putRebuild, rebuildOf, type Rebuild } from '../rebuildRecord.js';
import { FEW_DIRTY, runFeed } from '../feed.js';
import { emptyIfInvalid } from '../invalidBuilds.js';
import { considerate, type Lease, LeaseHeldError, type Pace, paced, seizeLease } from '../../coordination/index.js';
import { finishSwap } from '../swap.js';
import { dropBuild } from '../unusedBuilds.js';
import { openBuild } from '../runningBuild.js';
import { LeaseLostError } from '../writer.js';
import { MaintenanceRefusedError, type Refusal, type Requested, type StartedRebuild } from './orders.js';
import { progressOf, putProgress } from './progress.js';

/** How often a builder checks that its build is still requested. */
const TEND_MS = 1_000;

interface BuildOptions {
  readonly pace: Pace;
  /** Stops the build; the next builder continues from its checkpoint. */
  readonly signal: AbortSignal;
}

const leaseOf = (name: string): string => `rebuild/${name}`;

function seizeBuildLease(
  { store, logger, holder, leaseMs }: ProjectorProcess,
  name: string,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  return seizeLease(store.records, leaseOf(name), { holder, signal, logger, ttlMs: leaseMs });
}

/**
 * Requests rebuilds of all these read models, or of none where one can't be rebuilt now.
 * @throws MaintenanceRefusedError
 */
export async function requestRebuilds(
  deps: ProjectorProcess,
  projections: readonly Projection[],
  requested: Requested,
  signal: AbortSignal,
): Promise<StartedRebuild[]> {
  const { store } = deps;
  const leases: Lease[] = [];
  const inProgress = new Map<string, Rebuild>();
  try {
    for (const { name } of projections) {
      try {
        const lease = await seizeBuildLease(deps, name, signal);
        if (lease !== undefined) leases.push(lease);
      } catch (error) {
        if (!(error instanceof LeaseHeldError)) throw error;
        inProgress.set(name, await leftRebuild(store, name, requested, error.holder));
      }
    }
    signal.throwIfAborted();
    for (const projection of projections) await checkRebuild(store, projection);
    const started: StartedRebuild[] = [];
    for (const projection of projections) {
      const { name } = projection;
      const left = inProgress.get(name);
      const { value, resumed } =
        left === undefined ? await requestRebuild(store, projection, requested) : { value: left, resumed: true };
      started.push({ name, target: value.target, from: value.from ?? null, resumed });
    }
    return started;
  } finally {
    for (const lease of leases) await lease.release();
  }
}

/**
 * The rebuild that `holder` builds, if the same person requested it from a process that has left it to others.
 * @throws MaintenanceRefusedError that names the holder
 */
async function leftRebuild(store: ReadStore, name: string, { by }: Requested, holder: string): Promise<Rebuild> {
  const rebuild = (await rebuildOf(store, name))?.value;
  const isLeft = rebuild?.state === 'building' && rebuild.process !== undefined && rebuild.process !== holder;
  if (isLeft && rebuild.by === by) return rebuild;
  throw new MaintenanceRefusedError(`${name} is being rebuilt by ${holder}: wait for it, or abort it`, {
    busy: true,
    remedy: 'abort',
  });
}

/**
 * Records a rebuild, or continues the one in progress. The caller holds the lease of its builder.
 * @returns the rebuild, and whether it existed before
 * @throws MaintenanceRefusedError
 */
export async function requestRebuild(
  store: ReadStore,
  projection: Projection,
  { by, reason, at, process }: Requested,
): Promise<{ readonly value: Rebuild; readonly resumed: boolean }> {
  const { name, version } = projection;
  const requester = process === undefined ? {} : { process };
  for (;;) {
    const { from, existing } = await checkRebuild(store, projection);
    const own = existing !== undefined && sameVersion(existing.value.target, version) ? existing.value : undefined;
    if (own?.state === 'ready' || own?.state === 'swapping') return { value: own, resumed: true };
    if (own?.state === 'building') {
      const { failure: _, process: _process, ...left } = own;
      const value: Rebuild = { ...left, ...requester };
      if ((await putRebuild(store, name, value, existing?.version ?? 0)) !== undefined) return { value, resumed: true };
      continue;
    }
    if (existing !== undefined) {
      // The existing rebuild is half aborted, or of another version.
      await discardRebuild(store, name, existing);
      continue;
    }
    const target = await nextNumber(store, projection);
    const why = reason === undefined ? {} : { reason };
    const value: Rebuild = { target, from, kind: 'rebuild', state: 'building', by, at, ...why, ...requester };
    if ((await putRebuild(store, name, value, 0)) !== undefined) return { value, resumed: false };
  }
}

/**
 * @returns the number of the build in use, and the rebuild in progress
 * @throws MaintenanceRefusedError if a rebuild can't start now
 */
async function checkRebuild(
  store: ReadStore,
  { name, version }: Projection,
): Promise<{ readonly from: number | undefined; readonly existing: StoredRecord<Rebuild> | undefined }> {
  const from = await store.active(name);
  if (from !== undefined && buildOf(from).version !== version) {
    throw new MaintenanceRefusedError(
      otherReleaseText(name, from, version, 'wait: the projector builds that version and swaps it in by itself'),
      { remedy: 'status' },
    );
  }
  const existing = await rebuildOf(store, name);
  if (existing?.value.kind === 'rollback' && sameVersion(existing.value.target, version))
    throw new MaintenanceRefusedError(
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
 * Continues the rebuild of a read model, or drops an aborted one.
 * @throws LeaseHeldError while another process builds it; LeaseLostError, UnavailableError
 */
export async function carryOn(deps: ProjectorProcess, projection: Projection, signal: AbortSignal): Promise<void> {
  const { store, logger } = deps;
  const { name } = projection;
  const lease = await seizeBuildLease(deps, name, signal);
  if (lease === undefined) return;
  try {
    const record = await rebuildOf(store, name);
    if (record?.value.state === 'aborting') return await discardRebuild(store, name, record);
    if (record?.value.state !== 'building') return;
    const { target } = record.value;
    // Another release may have requested its own rebuild since.
    if (!sameVersion(projection.version, target)) return;
    logger.info({ projection: name, build: target }, 'rebuilding');
    const outcome = await build(deps, projection, target, lease, { pace: considerate(store.records), signal });
    logger.info({ projection: name, build: target, outcome }, 'rebuilding ended');
  } catch (error) {
    if (!(error instanceof AlteredEventError)) throw error;
    logger.error({ err: error, projection: name }, 'a rebuild failed');
    const record = await rebuildOf(store, name);
    if (record?.value.state === 'building')
      await putRebuild(store, name, { ...record.value, failure: error.message }, record.version);
  } finally {
    await lease.release();
  }
}

/**
 * @returns `aborted`: the build is no longer requested, and nothing is written; `stopped`: by the signal
 * @throws LeaseLostError
 */
export async function build(
  deps: ProjectorProcess,
  projection: Projection,
  target: number,
  lease: Lease,
  { pace, signal }: BuildOptions,
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
  const report = async (): Promise<void> =>
    putProgress(store, name, { target, progress: progress.now(), stored: progress.stored() });

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
 * @throws MaintenanceRefusedError
 */
export async function requestRollback(
  store: ReadStore,
  { name, version }: Projection,
  { by, reason, at }: Requested,
): Promise<number> {
  const refused = (why: string, refusal?: Refusal): Error => new MaintenanceRefusedError(`${name}${why}`, refusal);
  const existing = await rebuildOf(store, name);
  if (existing?.value.kind === 'rollback' && existing.value.state === 'leaving')
    throw refused(' was being rolled back, and that is being aborted: ask again in a moment', {
      busy: true,
      remedy: 'status',
    });
  if (existing?.value.kind === 'rollback') return existing.value.target;
  if (existing !== undefined) {
    const asked = `as ${existing.value.by} asked at ${existing.value.at}`;
    throw refused(` is being rebuilt, ${asked}: wait for it, or abort it`, { busy: true, remedy: 'abort' });
  }
  const [from, previous] = [await store.active(name), await previousBuildOf(store, name)];
  if (previous === undefined || from === previous.number)
    throw refused(': no previous build is kept, so there is nothing to go back to');
  const { number, until } = previous;
  // A build whose time is over may be dropped at any moment.
  if (until <= systemMs() || !(await store.versions(name)).includes(number))
    throw refused(`: no previous build is kept any more: ${buildText(number)} is dropped, since its time is over`);
  const isOwn = sameVersion(number, version);
  if (isOwn && from !== undefined && !sameVersion(from, version))
    throw refused(
      `: ${buildText(from)} is in use, of another release than this program: end the processes of that release and start those of this one, which then takes the previous build, ${buildText(number)}, into use again`,
    );
  if (!isOwn || from === undefined)
    throw refused(
      `: the previous build is ${buildText(number)}, this program makes version ${version}: go back to that program, and it takes its own into use again`,
    );
  const rollback: Rebuild = {
    target: number,
    from,
    kind: 'rollback',
    state: 'ready',
    by,
    at,
    ...(reason === undefined ? {} : { reason }),
  };
  if ((await putRebuild(store, name, rollback, 0)) === undefined)
    throw refused(': somebody else began a rebuild in this moment', { busy: true, remedy: 'status' });
  return number;
}

/**
 * Requests the end of a rebuild: its builder stops and drops the build, or the leading process does. The record is
 * deleted at the end.
 * @returns the number of the build
 * @throws MaintenanceRefusedError if no rebuild is in progress, or the build is in use
 */
export async function abortRebuild(store: ReadStore, name: string): Promise<number> {
  for (;;) {
    const record = await rebuildOf(store, name);
    if (record === undefined)
      throw new MaintenanceRefusedError(`${name} is not being rebuilt: there is nothing to abort`);
    const { value, version } = record;
    if (value.state === 'swapping' || (await store.active(name)) === value.target) {
      throw new MaintenanceRefusedError(
        `${name}: the new build is being swapped in at this moment; roll back afterwards`,
        { busy: true, remedy: 'rollback' },
      );
    }
    if (value.state === 'leaving' || value.state === 'aborting') return value.target;
    const state = value.state === 'ready' ? 'leaving' : 'aborting';
    if ((await putRebuild(store, name, { ...value, state }, version)) !== undefined) return value.target;
  }
}
