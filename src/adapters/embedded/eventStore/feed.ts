import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type {
  EventBatch,
  EventFilter,
  Position,
  ReadOptions,
  RecordedEvent,
  TextBatch,
} from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { matcherOf } from '../../eventMatcher.js';
import { numberOf, positionOf } from './log.js';
import type { EventReader, Scan } from './reader.js';
import type { RecentAppends, RecentSlice } from './recentAppends.js';
import type { LogTail } from './logTail.js';

const DEFAULT_BATCH = 1_000;
/** Length, in characters of data and metadata, at which a batch ends. */
const BATCH_SIZE = 4_000_000;
const TURN_MS = 5;
/** How many positions are scanned in a slice: adapted, so that a slice takes about a turn. */
const SPAN = { first: 1_024, least: 64, most: 131_072 };
const SLICE_ROWS = 1_000;
const RETRY_MS = 250;

interface FeedOptions {
  readonly reader: EventReader;
  /** Reports growth of the log; absent: the feed ends at the log's end. */
  readonly logTail?: LogTail;
  readonly recentAppends?: RecentAppends;
  readonly closed: () => boolean;
}

/** `readAll`; with a log tail `follow`, which retries without limit while the engine is unavailable. */
export function feed(
  after: Position | undefined,
  filter: EventFilter,
  options: ReadOptions,
  source: FeedOptions,
): AsyncGenerator<EventBatch, void> {
  const { reader, recentAppends } = source;
  const matches = matcherOf(filter);
  const remembered = (position: number, limit: number): RecentSlice | undefined =>
    recentAppends?.after(position, limit, matches);
  return batches<RecordedEvent>(after, options, { ...source, scan: () => reader.scan(filter), remembered });
}

/** `readTexts`: a feed of stored texts that ends at the log's end. */
export function textFeed(
  after: Position | undefined,
  filter: EventFilter,
  options: ReadOptions,
  source: Pick<FeedOptions, 'reader' | 'closed'>,
): AsyncGenerator<TextBatch, void> {
  return batches(after, options, {
    ...source,
    scan: () => source.reader.scanTexts(filter),
    remembered: () => undefined,
  });
}

type Batch<E> = Omit<EventBatch, 'events'> & { readonly events: E[] };

interface BatchSource<E> extends Omit<FeedOptions, 'recentAppends'> {
  readonly scan: () => Scan<E>;
  readonly remembered: (position: number, limit: number) => RecentSlice<E> | undefined;
}

async function* batches<E>(
  after: Position | undefined,
  options: ReadOptions,
  source: BatchSource<E>,
): AsyncGenerator<Batch<E>, void> {
  const { reader, logTail, closed } = source;
  const { batchSize = DEFAULT_BATCH, signal, onTrouble } = options;
  const stopped = (): boolean => closed() || signal?.aborted === true;
  const turn = turns();
  let position = numberOf(after);
  let scan: Scan<E> | undefined;

  /** The next batch of the log; `undefined` when the log has not grown, or the feed is to end. */
  async function nextBatch(): Promise<Batch<E> | undefined> {
    scan ??= adaptive(source.scan());
    let events: E[] = [];
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

  function rememberedBatch(): Batch<E> | undefined {
    const slice = source.remembered(position, batchSize);
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
      if (logTail === undefined) return;
      onTrouble?.(undefined);
      await logTail.past(position, signal, remembered !== undefined);
    } catch (error) {
      if (logTail === undefined || !(error instanceof UnavailableError)) throw error;
      onTrouble?.(error);
      // Rejects when the signal aborts it.
      await sleep(RETRY_MS, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(
        () => undefined,
      );
    }
  }
}

/**
 * Yields to the event loop after `TURN_MS`. A reader that has waited also lets the turn end: under load one batch then
 * takes all appends of the turn.
 */
function turns(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < TURN_MS) return;
    await nextTurn();
    since = performance.now();
  };
}

function adaptive<E>(scan: Scan<E>): Scan<E> {
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
