/** `readAll` and `follow` over the embedded log: batches of what matches, a slice at a time. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { EventBatch, EventFilter, Position, ReadOptions, RecordedEvent } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { matcherOf } from '../../eventMatcher.js';
import { numberOf, positionOf } from './log.js';
import type { EventReader, Scan } from './reader.js';
import type { RecentEvents } from './recentAppends.js';
import type { Tail } from './logTail.js';

const DEFAULT_BATCH = 1_000;
/** A batch ends when its texts reach so many characters, however few events it has. */
const BATCH_SIZE = 4_000_000;
/** Everything else gets its turn after so much time. */
const TURN_MS = 5;
/** How many positions a slice may pass over: adapted to what takes about a turn. */
const SPAN = { first: 1_024, least: 64, most: 131_072 };
/** Rows of one slice. */
const SLICE_ROWS = 1_000;
/** How long a follower waits after the engine failed, in ms. */
const RETRY_MS = 250;

/** The sources of a feed. */
export interface FeedOptions {
  readonly reader: EventReader;
  /** Followed on from the log's end; without it the feed ends there. */
  readonly tail?: Tail;
  /** What a follower takes from memory; without it everything is read. */
  readonly recent?: RecentEvents;
  /** True once the store is closed: the feed ends, and doesn't touch the reader again. */
  readonly closed: () => boolean;
}

/**
 * As `readAll`, or with a tail as `follow`, in the port. A follower tries again for ever when the engine is
 * unavailable.
 */
export async function* feed(
  after: Position | undefined,
  filter: EventFilter,
  options: ReadOptions,
  source: FeedOptions,
): AsyncGenerator<EventBatch, void> {
  const { reader, tail, recent, closed } = source;
  const { batchSize = DEFAULT_BATCH, signal, onTrouble } = options;
  const stopped = (): boolean => closed() || signal?.aborted === true;
  const turn = turns();
  const matches = matcherOf(filter);
  let position = numberOf(after);
  let scan: Scan | undefined;

  /** `undefined` when the log has not grown, or the feed is to end. */
  async function nextBatch(): Promise<EventBatch | undefined> {
    scan ??= adaptive(reader.scan(filter));
    let events: RecordedEvent[] = [];
    let size = 0;
    let at = position;
    let end = reader.end();
    while (at < end) {
      const slice = scan(at, end, Math.min(SLICE_ROWS, batchSize - events.length));
      if (events.length === 0) events = slice.events;
      else events.push(...slice.events);
      size += slice.size;
      at = slice.through;
      end = reader.end();
      if (at >= end || events.length >= batchSize || size >= BATCH_SIZE)
        return { events, position: positionOf(at), caughtUp: at >= end };
      await turn();
      if (stopped()) break;
    }
    return undefined;
  }

  /** The next batch from memory; `undefined` when not all of it is there. */
  function rememberedBatch(): EventBatch | undefined {
    const slice = recent?.after(position, batchSize, matches);
    return slice === undefined
      ? undefined
      : { events: slice.events, position: positionOf(slice.through), caughtUp: slice.last };
  }

  for (;;) {
    await turn();
    if (stopped()) return;
    try {
      const remembered = rememberedBatch();
      const batch = remembered ?? (await nextBatch());
      if (batch !== undefined) {
        position = Number(batch.position);
        yield batch;
      }
      if (batch?.caughtUp === false) continue;
      if (tail === undefined) return;
      onTrouble?.(undefined);
      await tail.past(position, signal, remembered !== undefined);
    } catch (error) {
      if (tail === undefined || !(error instanceof UnavailableError)) throw error;
      onTrouble?.(error);
      // Rejects when the signal ends it, which is looked at next.
      await sleep(RETRY_MS, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(
        () => undefined,
      );
    }
  }
}

/**
 * Resolves at once, or after everything else had its turn when this reader, and whoever works on its batches, has had
 * one. One that has waited lets the turn end, too: under load more is appended in it, which then makes one batch.
 */
function turns(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < TURN_MS) return;
    await nextTurn();
    since = performance.now();
  };
}

/** Lets a slice pass over only so many positions as take about a turn. */
function adaptive(scan: Scan): Scan {
  let span = SPAN.first;
  return (after, end, limit) => {
    const through = Math.min(end, after + span);
    const began = performance.now();
    const slice = scan(after, through, limit);
    const took = performance.now() - began;
    if (took > TURN_MS) span = Math.max(SPAN.least, span / 2);
    else if (took < TURN_MS / 2 && slice.through === through) span = Math.min(SPAN.most, span * 2);
    return slice;
  };
}
