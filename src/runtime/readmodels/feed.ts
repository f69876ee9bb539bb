/** One reading of the log for several builds: reading, folding and storing overlap. */
import { LOW_PRIORITY_SLICE_MS, slices, type Slices } from '../../lib/async/slices.js';
import type { EventBatch, EventStore, Position, ReadOptions } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { inBatchSpan } from '../../tracing/batches.js';
import { foldEvents } from './fold.js';
import type { Lease } from '../coordination/lease.js';
import { dirtyCount, type RunningBuild } from './runningBuild.js';
import { type LogAnchor, anchorOf } from '../log/logAnchor.js';
import { makeWriter, type Writer } from './writer.js';

/** Events read at once: few enough to hold up nothing else on this thread. */
const READ_EVENTS = 1_000;
/** `maxDirty` of work beside what serves, whose memory is to stay small. */
export const FEW_DIRTY = 10_000;
/** Documents that may wait to be stored; then folding waits for the write under way. */
const MAX_DIRTY = 30_000;

export interface FeedOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly lease: Pick<Lease, 'held'>;
  /** Ends the feed: what is folded by then is still stored. */
  readonly signal: AbortSignal;
  /** Called once, when everything up to the log's end is folded and stored; later events wait meanwhile. */
  readonly caughtUp: (builds: readonly RunningBuild[]) => Promise<void>;
  /** Ends it after `caughtUp`. */
  readonly untilCaughtUp?: boolean;
  /** Documents that may wait to be stored; default 30,000. */
  readonly maxDirty?: number;
  /** Called with the last event of each batch that was folded. */
  readonly onFolded?: (event: LogAnchor) => void;
  readonly onTrouble?: ReadOptions['onTrouble'];
}

/**
 * Feeds the builds from the least advanced on, until `signal`. @throws UnavailableError, LeaseLostError or another
 * error: then what is in memory is void, and the builds are to be opened anew
 */
export async function runFeed(builds: readonly RunningBuild[], options: FeedOptions): Promise<void> {
  const {
    events,
    store,
    lease,
    signal,
    caughtUp,
    untilCaughtUp = false,
    maxDirty = MAX_DIRTY,
    onFolded,
    onTrouble,
  } = options;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  let failure: { readonly error: unknown } | undefined;
  const writer = makeWriter(builds, store, lease, (error) => {
    failure = { error };
    stop.abort(error);
  });
  const time = pressure(builds, writer, maxDirty, stop.signal);
  const after = leastAdvanced(builds);
  const names = builds.map((build) => build.checkpoint);
  const types = [...new Set(builds.flatMap((build) => build.projection.types))];

  const arrive = async (): Promise<void> => {
    // Documents remembered on the way would be too many to keep.
    for (const build of builds) build.cache.clear();
    await caughtUp(builds);
  };
  let reached = await isAtEnd(events, after);
  if (reached) await arrive();
  if (reached && untilCaughtUp) return;

  const batches = events
    .follow(after, { types }, { batchSize: READ_EVENTS, signal: stopped, onTrouble })
    [Symbol.asyncIterator]();
  let next = ask(batches);
  try {
    for (;;) {
      const { value: batch, done } = await next;
      if (done === true || stopped.aborted) break;
      next = ask(batches);
      // At the log's end nothing has run before: few events need not wait a turn.
      if (reached) time.start();
      await inBatchSpan(names, batch.events, async () => {
        for (const build of builds) {
          await foldEvents(build, store, batch.events, time);
          if (build.folded === undefined || build.folded < batch.position) build.folded = batch.position;
        }
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
  } finally {
    stop.abort();
    await next.catch(() => undefined);
    await writer.drain();
  }
  if (failure !== undefined) throw failure.error;
}

/** Asks for the next batch, ahead of its use. */
function ask(batches: AsyncIterator<EventBatch>): Promise<IteratorResult<EventBatch>> {
  const next = batches.next();
  // Its error reaches the loop; a feed that ends before must not leave it unhandled.
  next.catch(() => undefined);
  return next;
}

/** `undefined`, the log's beginning, is before everything. */
function leastAdvanced(builds: readonly RunningBuild[]): Position | undefined {
  let least: Position | undefined = builds[0]?.folded;
  for (const { folded } of builds) {
    if (folded === undefined) return undefined;
    if (least === undefined || folded < least) least = folded;
  }
  return least;
}

/** Whether there is nothing to read: `follow` yields nothing then. */
async function isAtEnd(events: EventStore, after: Position | undefined): Promise<boolean> {
  const end = await events.end();
  return end === undefined || (after !== undefined && after >= end);
}

/** Folding rests when its slice is used up, and longer when the store can't keep up. */
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
