/**
 * One run of the leading projector: all projections on one feed, those behind on their own until they have caught up,
 * rebuilds swapped in, repairs made in between.
 */
import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore, StoredRecord } from '../../ports/readStore.js';
import type { FollowerRun } from '../supervision/followers.js';
import type { Projection } from './projection.js';
import { carryOut, openOrders, refuseInvalid, type RepairOrder } from './maintenance/repairOrders.js';
import { asBuild, REBUILDS, rebuildOf, sameVersion, type Rebuild } from './builds.js';
import { type FeedOptions, runFeed } from './feed.js';
import { type BuildCheck, emptyIfInvalid } from './invalidBuilds.js';
import type { Lease } from '../coordination/lease.js';
import { paced, type Pace } from '../coordination/pace.js';
import { dropBuild, finishSwap, swapIn, tidy, TIDY_MS, whileKept } from './swap.js';
import { openBuild, type RunningBuild } from './runningBuild.js';
import { groupsByPosition, isPreviousVersion, openBuilds } from './runningBuilds.js';
import { endOrphaned, settleOrphaned } from './orphanedModels.js';
import { putAnchor, type LogAnchor } from '../log/logAnchor.js';

/** How often it looks for rebuilds and repairs that it is asked for, in ms. */
const ORDERS_MS = 400;
/** Each so many of these looks it also looks what readers use, and keeps how far the log was seen. */
const USE_LOOKS = 5;
/** How long a rebuild that could not be taken over waits for the next attempt, in ms. */
const JOIN_AGAIN_MS = 5_000;

/** What a run works on. */
export interface LeaderOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
  readonly logger: Logger;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  /** Time of leases in ms; default `LEASE_MS`. */
  readonly leaseMs: number | undefined;
  readonly lease: Lease;
  /** Ends the run: what is folded by then is still stored. */
  readonly signal: AbortSignal;
  /** How long a build that readers leave is kept up to date, in ms. */
  readonly retireMs: number;
  /** Slows what is built beside what serves. */
  readonly pace: Pace;
  /** Told when it has caught up, and of failures of the feed that are waited out. */
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
  /** Told the builds it runs, each time that they change. */
  readonly onBuilds: (builds: readonly RunningBuild[]) => void;
}

/** A rebuild that this process takes over. */
interface Joining {
  readonly rebuild: Rebuild;
  readonly stop: AbortController;
  build?: RunningBuild;
  /** Resolves when its catching up has ended. */
  running?: Promise<void>;
}

/**
 * Runs until `signal`. @throws UnavailableError, LeaseLostError or whatever else went wrong: then what was in memory is
 * void, and another run goes on from the checkpoints.
 */
export async function runAsLeader(options: LeaderOptions): Promise<void> {
  const { events, store, projections, logger, holder, leaseMs, lease, signal, retireMs, pace, health, onBuilds } =
    options;
  const check: BuildCheck = { store, events, logger, lease };
  const builds = await openBuilds(check, projections);
  const orphan = await settleOrphaned({ store, logger, holder, leaseMs, signal }, builds);
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  // Each build that readers leave waits on it for a minute: there may be many.
  setMaxListeners(0, over);
  const shared = { events, store, lease };
  const beside = paced({ events, store }, pace);
  const together: RunningBuild[] = [];
  const arriving: RunningBuild[] = [];
  const leaving = new Set<RunningBuild>();
  const joining = new Map<string, Joining>();
  const orders = new Map<string, StoredRecord<RepairOrder>>();
  const background = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  /** The last event that was folded, until it is kept. */
  let seen: LogAnchor | undefined;
  let turn = new AbortController();
  /** How many swaps were begun, and ended. */
  const swaps = { begun: 0, ended: 0 };

  function changed(): void {
    for (const build of builds) {
      build.report ??= ({ documentId, stream, type, position, cause }) =>
        logger.warn(
          { projection: build.checkpoint, documentId, stream, type, position, cause },
          'projector: a document is quarantined: it answers 503 until it is rebuilt',
        );
    }
    onBuilds([...builds]);
  }

  /** Runs beside; the first failure ends everything. */
  function beginBeside(work: () => Promise<void>): void {
    const running = work().then(
      () => void background.delete(running),
      (error: unknown) => {
        background.delete(running);
        failure ??= { error };
        ending.abort();
      },
    );
    background.add(running);
  }

  /** Makes use of builds that stand at the log's end. Nothing is written to their collections meanwhile. */
  async function use(ready: readonly RunningBuild[]): Promise<void> {
    for (const build of ready) {
      if (build.caughtUp) continue;
      swaps.begun += 1;
      const { left, refused } = await swapIn(build, builds, { store, lease, logger }).finally(() => (swaps.ended += 1));
      const { name } = build.projection;
      if (refused === true) leave(build);
      else if (left !== undefined) beginBeside(() => retire(left));
      else if (build.active === build.projection.version) beginBeside(() => tidyLater(name));
      if (build.active === build.projection.version && orphan.delete(name)) await endOrphaned(store, name);
      if (joining.get(name)?.rebuild.target === build.projection.version) joining.delete(name);
    }
  }

  function leave(build: RunningBuild): void {
    leaving.add(build);
    turn.abort();
  }

  /**
   * Readers take a second to notice the swap; until then what they still read is kept up to date. What a previous release
   * made is so for as long as it is kept.
   */
  async function retire(build: RunningBuild): Promise<void> {
    await pause(retireMs, over);
    if (isPreviousVersion(build, projections)) await whileKept(store, build, over);
    // A rollback may have brought it back.
    if (build.follows === true) leave(build);
    await tidy(build.projection.name, () => builds.filter((one) => !leaving.has(one)), { store, lease, logger });
  }

  async function tidyLater(name: string): Promise<void> {
    await pause(retireMs, over);
    if (!over.aborted) await tidy(name, () => builds, { store, lease, logger });
  }

  async function tidyNowAndThen(): Promise<void> {
    while (!over.aborted) {
      await pause(TIDY_MS, over);
      for (const name of new Set(projections.map((projection) => projection.name)))
        if (!over.aborted) await tidy(name, () => builds, { store, lease, logger });
    }
  }

  /** Catches builds up on a feed of their own, and brings them to the others. */
  async function catchUp(
    group: readonly RunningBuild[],
    { until, slowed }: { readonly until: AbortSignal; readonly slowed: boolean },
  ): Promise<void> {
    const caughtUp = async (ready: readonly RunningBuild[]): Promise<void> => {
      for (const build of ready) {
        await store.ensure(build.collection);
        // One that is in use and kept up to date here goes on until both stand at the same position.
        if (!builds.some((other) => other !== build && other.projection.name === build.projection.name))
          await use([build]);
      }
    };
    await runFeed(group, { ...shared, ...(slowed ? beside : {}), caughtUp, signal: until, untilCaughtUp: true });
    if (until.aborted) return;
    arriving.push(...group);
    turn.abort();
  }

  /** Between two turns of the common feed: everything is stored, and nobody writes. */
  async function between(): Promise<void> {
    together.push(...arriving.splice(0));
    for (const build of leaving) {
      takeOut(together, build);
      takeOut(builds, build);
      leaving.delete(build);
      changed();
    }
    for (const [key, order] of orders) {
      const build = served(order.value.name);
      if (build !== undefined && stands(build, order.value)) {
        await carryOut(build, order, { store, events, lease });
        logger.info(
          { projection: build.checkpoint, documents: order.value.documents.length },
          'projector: an order to repair documents was dealt with',
        );
        orders.delete(key);
      }
    }
  }

  const served = (name: string): RunningBuild | undefined =>
    together.find(({ projection, active }) => projection.name === name && projection.version === active);
  const stands = (build: RunningBuild, { through }: RepairOrder): boolean =>
    through === null || (build.stored !== undefined && build.stored >= through);

  async function useAll(ready: readonly RunningBuild[]): Promise<void> {
    await use(ready);
    health.well();
  }

  async function keepTogether(first: readonly RunningBuild[]): Promise<void> {
    together.push(...first);
    while (!over.aborted) {
      turn = new AbortController();
      await between();
      await runFeed(together, {
        ...shared,
        caughtUp: useAll,
        signal: AbortSignal.any([over, turn.signal]),
        seen: (event) => (seen = event),
        onTrouble: health.onTrouble,
      } satisfies FeedOptions);
    }
  }

  /** Takes a build over: catches it up, and brings it to the others, where it is swapped in. */
  async function join(name: string, projection: Projection, entry: Joining): Promise<void> {
    const until = AbortSignal.any([over, entry.stop.signal]);
    try {
      // What readers have left just now is still run here.
      const there = builds.find(
        (one) => one.projection.name === name && one.projection.version === entry.rebuild.target,
      );
      if (there !== undefined) {
        entry.build = there;
        leaving.delete(there);
        there.joins = true;
        there.caughtUp = false;
        turn.abort();
        return;
      }
      const target = asBuild(projection, entry.rebuild.target);
      await emptyIfInvalid(check, target);
      const build = await openBuild(store, target);
      build.joins = true;
      entry.build = build;
      builds.push(build);
      changed();
      await catchUp([build], { until, slowed: true });
    } catch (error) {
      if (over.aborted) return;
      logger.warn(
        { err: error, projection: name, retryMs: JOIN_AGAIN_MS },
        'projector: a rebuild could not be taken over yet',
      );
      await pause(JOIN_AGAIN_MS, until);
      // At once: it never came to the others, and what it had in memory is void, so that the next attempt must not find
      // it here.
      if (entry.build !== undefined) takeOut(builds, entry.build);
      changed();
      joining.delete(name);
    }
  }

  /** A rebuild that is not wanted any more. */
  async function discard(name: string, rebuild: Rebuild): Promise<void> {
    const entry = joining.get(name);
    if (entry !== undefined) {
      entry.stop.abort();
      await entry.running;
      if (entry.build !== undefined) leave(entry.build);
      while (
        !over.aborted &&
        entry.build !== undefined &&
        (builds.includes(entry.build) || arriving.includes(entry.build))
      )
        await pause(20, over);
      joining.delete(name);
    }
    if (over.aborted || !lease.held) return;
    if (rebuild.kind === 'rebuild') await dropBuild(store, name, rebuild.target);
    // Another may have been asked for meanwhile.
    const record = await rebuildOf(store, name);
    if (record?.value.target === rebuild.target && record.value.state === 'leaving')
      await store.records.delete(record.key, record.version);
    logger.info({ projection: name, build: rebuild.target }, 'projector: a rebuild was aborted');
  }

  /**
   * What an earlier leader, cut off in the middle of a swap, may bring to its end at any time: then builds are opened
   * anew, or nobody would keep up what readers use.
   */
  async function lookWhatIsUsed(): Promise<void> {
    for (const name of new Set(builds.map(({ projection }) => projection.name))) {
      const { begun, ended } = swaps;
      const active = await store.active(name);
      if (
        begun !== ended ||
        begun !== swaps.begun ||
        !builds.some((build) => build.projection.name === name && build.active !== active)
      )
        continue;
      logger.warn(
        { projection: name, active },
        'projector: readers use another build than this process knew of, beginning anew',
      );
      ending.abort();
    }
  }

  /** Looks for what it is asked to do. */
  async function look(): Promise<void> {
    for (const { key, value: rebuild } of await store.records.list<Rebuild>(REBUILDS)) {
      const name = key.slice(REBUILDS.length);
      if (rebuild.state === 'leaving') await discard(name, rebuild);
      const projection = projections.find((one) => one.name === name && sameVersion(one.version, rebuild.target));
      if (projection === undefined) continue;
      if (rebuild.state !== 'ready' && rebuild.state !== 'swapping') continue;
      if ((await store.active(name)) === rebuild.target) await finishSwap(store, name, rebuild);
      else if (!joining.has(name)) {
        const entry: Joining = { rebuild, stop: new AbortController() };
        joining.set(name, entry);
        entry.running = join(name, projection, entry);
        beginBeside(async () => entry.running);
      }
    }
    for (const order of await openOrders(store)) {
      const build = served(order.value.name);
      if (build === undefined) continue;
      if (!stands(build, order.value)) {
        await refuseInvalid(check, order);
        continue;
      }
      orders.set(order.key, order);
      turn.abort();
    }
  }

  /** Keeps an anchor of what was folded. Of several that come meanwhile the last is kept the next time. */
  async function keepAnchor(): Promise<void> {
    const anchor = seen;
    if (anchor === undefined || !lease.held) return;
    await putAnchor(store.records, anchor);
    if (seen === anchor) seen = undefined;
  }

  async function lookNowAndThen(): Promise<void> {
    let failing = false;
    for (let looks = 1; !over.aborted; looks++) {
      try {
        if (looks % USE_LOOKS === 0) {
          await lookWhatIsUsed();
          await keepAnchor();
        }
        await look();
        failing = false;
      } catch (error) {
        if (!failing) logger.warn({ err: error }, 'projector: could not look for rebuilds and repairs');
        failing = true;
      }
      await pause(ORDERS_MS, over);
    }
  }

  changed();
  const [first = [], ...behind] = groupsByPosition(builds);
  const serves = builds.some(({ active }) => active !== undefined);
  for (const group of behind) {
    const slowed = serves && group.every((build) => build.active !== build.projection.version);
    beginBeside(() => catchUp(group, { until: over, slowed }));
  }
  beginBeside(lookNowAndThen);
  beginBeside(tidyNowAndThen);
  for (const build of builds) if (build.follows === true) beginBeside(() => retire(build));
  beginBeside(() => keepTogether(first));
  while (background.size > 0) await Promise.all(background);
  if (failure !== undefined) throw failure.error;
}

function takeOut(builds: RunningBuild[], build: RunningBuild): void {
  const at = builds.indexOf(build);
  if (at !== -1) builds.splice(at, 1);
}
