/** Reads the log once for several builds, while it folds and stores. */
import { within } from '../../lib/async/within.js';
import { LOW_PRIORITY_SLICE_MS, slices, type Slices } from '../../lib/async/slices.js';
import { ticks } from '../../lib/world.js';
import type { EventBatch, EventStore, Position, ReadOptions, RecordedEvent } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { AlteredEventError } from '../../ports/unavailable.js';
import { inBatchSpan } from '../../tracing/batches.js';
import { foldEvents } from './fold.js';
import type { Lease } from '../coordination/index.js';
import { dirtyCount, type RunningBuild } from './runningBuild.js';
import { type LogAnchor, anchorOf } from '../log/logAnchor.js';
import { makeWriter, type Writer } from './writer.js';

/** Events in one batch, few enough not to block other work on this thread. */
const READ_EVENTS = 1_000;
/** `maxDirty` of builds that do not serve, whose memory must stay small. */
export const FEW_DIRTY = 10_000;
/** Folding waits for the store above this number of unstored documents. */
const MAX_DIRTY = 30_000;

/**
 * At the log's end a projection with `last` is folded this often, or after so many events. Its cost is mostly that of
 * each fold and write, rather than that of each event.
 */
const HELD = { ms: 100, events: 500 };

/**
 * Failed reads of an altered event that end a feed with `endOnAltered`. A bad read may be temporary: followers wait a
 * quarter of a second between tries.
 */
const ALTERED_TRIES = 3;

export interface FeedOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly lease: Pick<Lease, 'held'>;
  /** Ends the feed; folded events are still stored. */
  readonly signal: AbortSignal;
  /** Called once, with everything up to the log's end stored. Later events wait for it. */
  readonly caughtUp: (builds: readonly RunningBuild[]) => Promise<void>;
  readonly untilCaughtUp?: boolean;
  /** For work that a caller waits for: the feed fails with the cause if an event stays unreadable after some tries. */
  readonly endOnAltered?: boolean;
  readonly maxDirty?: number;
  /** Called with the last event of each folded batch. */
  readonly onFolded?: (event: LogAnchor) => void;
  readonly onTrouble?: ReadOptions['onTrouble'];
  readonly gatherMs?: ReadOptions['gatherMs'];
}

/**
 * Folds the log into the builds, from the position of the least advanced build on.
 * @throws UnavailableError, LeaseLostError and others: the builds in memory are invalid then, and must be opened again
 */
export async function runFeed(builds: readonly RunningBuild[], options: FeedOptions): Promise<void> {
  const {
    events,
    store,
    lease,
    signal,
    caughtUp,
    untilCaughtUp = false,
    endOnAltered = false,
    maxDirty = MAX_DIRTY,
    onFolded,
    onTrouble,
    gatherMs,
  } = options;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  let failure: { readonly error: unknown } | undefined;
  const writer = makeWriter(builds, store, lease, (error) => {
    failure = { error };
    stop.abort(error);
  });
  let unreadable = 0;
  const trouble: ReadOptions['onTrouble'] = (error) => {
    onTrouble?.(error);
    unreadable = error instanceof AlteredEventError ? unreadable + 1 : 0;
    if (!endOnAltered || unreadable < ALTERED_TRIES) return;
    failure ??= { error };
    stop.abort(error);
  };
  const time = pressure(builds, writer, maxDirty, stop.signal);
  const after = leastAdvanced(builds);
  const names = builds.map((build) => build.checkpoint);
  const types = [...new Set(builds.flatMap((build) => build.projection.types))];

  const held = heldEvents(builds, store, time);

  const arrive = async (): Promise<void> => {
    // The catch-up leaves more documents than should stay in memory.
    for (const build of builds) build.cache.clear();
    await caughtUp(builds);
  };
  let reached = await isAtEnd(events, after);
  if (reached) await arrive();
  if (reached && untilCaughtUp) return;

  const batches = events
    .follow(after, { types }, { batchSize: READ_EVENTS, signal: stopped, onTrouble: trouble, gatherMs })
    [Symbol.asyncIterator]();
  let next = ask(batches);
  try {
    for (;;) {
      const result = await held.before(next);
      if (result === 'due') {
        await held.fold();
        writer.kick();
        continue;
      }
      const { value: batch, done } = result;
      if (done === true || stopped.aborted) break;
      next = ask(batches);
      // At the log's end this thread was idle, so a new time slice starts and a few events are folded at once.
      if (reached) time.start();
      await inBatchSpan(names, batch.events, async () => {
        for (const build of builds)
          if (!reached || build.projection.last !== true) await foldBatch(build, store, batch, time);
        if (reached) await held.add(batch);
      });
      const last = batch.events.at(-1);
      if (last !== undefined) onFolded?.(anchorOf(last));
      writer.kick();
      if (reached || !batch.caughtUp) continue;
      await writer.drain();
      if (stopped.aborted) break;
      reached = true;
      await arrive();
      if (untilCaughtUp) break;
    }
    if (failure === undefined) await held.fold();
  } finally {
    stop.abort();
    await next.catch(() => undefined);
    await writer.drain();
  }
  if (failure !== undefined) throw failure.error;
}

async function foldBatch(
  build: RunningBuild,
  store: ReadStore,
  { events, position }: Pick<EventBatch, 'events' | 'position'>,
  time: Slices,
): Promise<void> {
  await foldEvents(build, store, events, time);
  if (build.folded === undefined || build.folded < position) build.folded = position;
}

interface HeldEvents {
  /** Holds a batch back, and folds all held events once there are `HELD.events` of them. */
  add(batch: EventBatch): Promise<void>;
  /** Resolves with the next batch, or with `due` if the held events are to be folded first. */
  before<T>(next: Promise<T>): Promise<T | 'due'>;
  fold(): Promise<void>;
}

/** Events that projections with `last` have not folded yet. */
function heldEvents(builds: readonly RunningBuild[], store: ReadStore, time: Slices): HeldEvents {
  const slow = builds.filter(({ projection }) => projection.last === true);
  let events: RecordedEvent[] = [];
  let position: Position | undefined;
  let since = 0;

  async function fold(): Promise<void> {
    if (position === undefined) return;
    const batch = { events, position };
    events = [];
    position = undefined;
    for (const build of slow) await foldBatch(build, store, batch, time);
  }

  return {
    fold,
    async add(batch) {
      if (slow.length === 0) return;
      if (position === undefined) since = ticks();
      events.push(...batch.events);
      ({ position } = batch);
      if (events.length >= HELD.events) await fold();
    },
    async before(next) {
      if (position === undefined) return next;
      const left = HELD.ms - (ticks() - since);
      return left <= 0 ? 'due' : within(next, left, () => 'due' as const);
    },
  };
}

function ask(batches: AsyncIterator<EventBatch>): Promise<IteratorResult<EventBatch>> {
  const next = batches.next();
  // The feed's loop gets this error; a feed that ends earlier must not leave it unhandled.
  next.catch(() => undefined);
  return next;
}

/** Position of the least advanced build; `undefined`: a build is at the log's beginning. */
function leastAdvanced(builds: readonly RunningBuild[]): Position | undefined {
  let least: Position | undefined = builds[0]?.folded;
  for (const { folded } of builds) {
    if (folded === undefined) return undefined;
    if (least === undefined || folded < least) least = folded;
  }
  return least;
}

/** Checked before `follow`, which yields nothing at the log's end. */
async function isAtEnd(events: EventStore, after: Position | undefined): Promise<boolean> {
  const end = await events.end();
  return end === undefined || (after !== undefined && after >= end);
}

/** Folding rests when its time slice is used up, and longer while the store can't keep up. */
function pressure(builds: readonly RunningBuild[], writer: Writer, maxDirty: number, failed: AbortSignal): Slices {
  const time = slices(LOW_PRIORITY_SLICE_MS);
  return {
    start: time.start,
    due: () => time.due() || dirtyCount(builds) >= maxDirty,
    async rest() {
      while (dirtyCount(builds) >= maxDirty) {
        failed.throwIfAborted();
        writer.kick();
        await writer.turn();
      }
      await time.rest();
    },
  };
}
