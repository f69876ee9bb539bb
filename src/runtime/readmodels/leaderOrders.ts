/** Rebuilds, rollbacks, repairs and drops that are requested while the leader runs. */
import { pauseForBeats } from '../../lib/async/beats.js';
import { pause } from '../../lib/async/pause.js';
import { putAnchor } from '../log/logAnchor.js';
import { asBuild, sameVersion } from './buildNumbers.js';
import { putRebuild, REBUILDS, rebuildOf, type Rebuild } from './rebuildRecord.js';
import { catchUp } from './catchUp.js';
import { dropFrozenBuilds } from './frozenBuilds.js';
import { emptyIfInvalid } from './invalidBuilds.js';
import { addBuild, type LeaderRun, nextSteps, removeBuild, takeOut } from './leaderRun.js';
import { openOrders, refuseInvalid } from './maintenance/repairOrders.js';
import type { Step } from './plan.js';
import { enter, openBuild, type RunningBuild } from './runningBuild.js';
import { finishSwap } from './swap.js';
import { dropBuild } from './unusedBuilds.js';

const POLL_MS = 500;
/** Every fourth poll also checks the build in use, stores the log's anchor, and drops frozen builds. */
const SLOW_LOOKS = 4;
const TAKE_OVER_AGAIN_MS = 5_000;

/** Polls for requests until the run is over. Failures of the read store are waited out. */
export async function lookForOrders(run: LeaderRun): Promise<void> {
  const { inUse, logger, over } = run;
  let failing = false;
  for (let looks = 1; !over.aborted; looks++) {
    try {
      if (looks % SLOW_LOOKS === 0) {
        for (const name of inUse.keys()) await checkInUse(run, name);
        await storeAnchor(run);
        await dropFrozenBuilds(run);
      }
      await look(run);
      failing = false;
    } catch (error) {
      if (!failing) logger.warn({ err: error }, 'projector: could not look for rebuilds and repairs');
      failing = true;
    }
    await pauseForBeats(POLL_MS, over);
  }
}

async function look(run: LeaderRun): Promise<void> {
  const { store, over } = run;
  const rebuilds = new Map<string, Rebuild>();
  for (const { key, value } of await store.records.list<Rebuild>(REBUILDS)) {
    const name = key.slice(REBUILDS.length);
    rebuilds.set(name, value);
    if (value.state === 'ready' || value.state === 'swapping') await checkInUse(run, name);
  }
  run.requested = { rebuilds, repairs: await openOrders(store) };
  const slow = nextSteps(run).flatMap((step) => startStep(run, step) ?? []);
  for (const work of slow) if (!over.aborted) await work();
}

/** Carries a step out, or starts it in the background. @returns work that the caller must await */
function startStep(run: LeaderRun, step: Step<RunningBuild>): (() => Promise<void>) | undefined {
  const { store, events, logger, projections } = run;
  switch (step.do) {
    case 'open': {
      const { name, rebuild } = step;
      const projection = projections.find((one) => one.name === name && sameVersion(one.version, rebuild.target));
      if (projection !== undefined) run.inBackground(async () => takeOver(run, asBuild(projection, rebuild.target)));
      return undefined;
    }
    case 'bring back':
      enter(step.build, 'ready');
      step.build.requested = true;
      step.build.caughtUp = false;
      run.turn.abort();
      return undefined;
    case 'take out':
      takeOut(run, step.build);
      return undefined;
    case 'repair':
      run.turn.abort();
      return undefined;
    case 'finish':
      return async () => finishSwap(store, step.name, step.rebuild);
    case 'abort':
      return async () => abortLeft(run, step.name, step.rebuild);
    case 'discard':
      return async () => discard(run, step.name, step.rebuild);
    case 'put back':
      return async () => putBack(run, step.name, step.rebuild);
    case 'check':
      return async () => refuseInvalid({ store, events, logger }, step.order);
    // These steps are carried out at the log's end (`logEnd.ts`).
    case 'settle':
    case 'swap in':
      return undefined;
    default:
      return step satisfies never;
  }
}

/** Opens a finished rebuild's build and catches it up. A failure is waited out. */
async function takeOver(run: LeaderRun, fold: RunningBuild['projection']): Promise<void> {
  const { store, logger, opening, over } = run;
  const { name } = fold;
  const stop = new AbortController();
  const until = AbortSignal.any([over, stop.signal]);
  let build: RunningBuild | undefined;
  opening.add(name);
  try {
    await emptyIfInvalid(run, fold);
    build = await openBuild(store, fold);
    build.requested = true;
    run.stops.set(build, stop);
    addBuild(run, build);
    opening.delete(name);
    await catchUp(run, [build], { until, slowed: true });
  } catch (error) {
    if (over.aborted) return;
    const retryMs = TAKE_OVER_AGAIN_MS;
    logger.warn({ err: error, projection: name, retryMs }, 'projector: a rebuild could not be taken over yet');
    await pause(retryMs, until);
    // The build in memory is invalid; the next attempt opens it again.
    if (build !== undefined) removeBuild(run, build);
    opening.delete(name);
  }
}

async function discard({ store, lease, logger }: LeaderRun, name: string, { kind, target }: Rebuild): Promise<void> {
  if (!lease.held) return;
  if (kind === 'rebuild') await dropBuild(store, name, target);
  // Another rebuild may have been requested since.
  const record = await rebuildOf(store, name);
  if (record?.value.target === target && record.value.state === 'leaving')
    await store.records.delete(record.key, record.version);
  logger.info({ projection: name, build: target }, 'projector: a rebuild was aborted');
}

/** Its operator may have aborted it since it was read, and have requested another one: that one goes on. */
async function abortLeft({ store, lease }: LeaderRun, name: string, { target }: Rebuild): Promise<void> {
  const record = await rebuildOf(store, name);
  if (!lease.held || record?.value.target !== target) return;
  const { value, version } = record;
  if (value.state === 'ready') await putRebuild(store, name, { ...value, state: 'leaving' }, version);
  if (value.state === 'building') await putRebuild(store, name, { ...value, state: 'aborting' }, version);
}

/** No process swaps the build in now, so it can be aborted; a leading process of its release may still swap it in. */
async function putBack({ store, lease }: LeaderRun, name: string, { target }: Rebuild): Promise<void> {
  const record = await rebuildOf(store, name);
  if (lease.held && record?.value.target === target && record.value.state === 'swapping')
    await putRebuild(store, name, { ...record.value, state: 'ready' }, record.version);
}

/**
 * Ends the run if readers use an unknown build: an earlier leader, cut off during a swap, may complete that swap at any
 * time. The next run opens the builds again.
 */
async function checkInUse(run: LeaderRun, name: string): Promise<void> {
  const { store, logger, inUse, swaps } = run;
  const { started, ended } = swaps;
  const active = await store.active(name);
  if (started !== ended || started !== swaps.started || !inUse.has(name) || inUse.get(name) === active) return;
  logger.warn(
    { projection: name, active },
    'projector: readers use another build than this process knew of, starting again',
  );
  run.end();
}

async function storeAnchor(run: LeaderRun): Promise<void> {
  const { anchor, lease, store } = run;
  if (anchor === undefined || !lease.held) return;
  await putAnchor(store.records, anchor);
  if (run.anchor === anchor) run.anchor = undefined;
}
