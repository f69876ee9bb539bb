/** Feeds of the log: consecutive subscriptions deliver it once and in order. */
import { pause } from '../../lib/async/pause.js';
import type { EventBatch, EventFilter, Position, ReadOptions } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { pauses } from './attempts.js';
import { TooSlowError } from './failures.js';
import { matcher, serverFilter } from './filters.js';
import type { LiveTail } from './liveTail.js';
import { type NodeSubscription, nodeSubscription } from './nodeSubscription.js';
import { opened } from './opened.js';
import type { Pool } from './pool.js';
import { commitOf } from './records.js';
import { subscribe } from './requests.js';

const DEFAULT_BATCH = 1_000;
const PAUSE = { first: 50, most: 2_000 };
/** Failures in a row that end `readAll`. */
const READ_ALL_TRIES = 5;

export interface FeedSource extends Pick<Pool, 'lease'> {
  readonly end: () => Promise<Position | undefined>;
  readonly timeoutMs: number;
  readonly closed: AbortSignal;
  /** The live end of the log, which followers share; absent: the feed ends at the log's end. */
  readonly tail?: LiveTail;
  /** Called once when the log can't be read, and once when it can again. */
  readonly onTrouble?: (error: Error | undefined) => void;
}

/**
 * Reads or follows the log. Positions are those of events, or of the log's end before a subscription at the same node,
 * never a checkpoint's. None lies beyond the log's end, whatever the server reports, or beyond what that node has. A
 * subscription with the filter ends at the log's end; a follower then reads the live end, which all followers share.
 */
export async function* feed(
  after: Position | undefined,
  filter: EventFilter,
  options: ReadOptions,
  source: FeedSource,
): AsyncGenerator<EventBatch, void> {
  const { batchSize = DEFAULT_BATCH, signal, onTrouble: tell, gatherMs = 0 } = options;
  const { closed, tail, timeoutMs, onTrouble } = source;
  const stop = signal === undefined ? closed : AbortSignal.any([closed, signal]);
  const matches = matcher(filter);
  const narrow = serverFilter(filter);
  let position = after;
  let failures = 0;
  let troubled = false;
  let saidCaughtUp = false;
  let nextPause = pauses(PAUSE);
  if (after !== undefined) commitOf(after);

  function advance(batch: EventBatch): EventBatch {
    position = batch.position;
    saidCaughtUp ||= batch.caughtUp;
    if (troubled) onTrouble?.(undefined);
    troubled = false;
    failures = 0;
    nextPause = pauses(PAUSE);
    return batch;
  }

  async function* upToEnd(end: Position): AsyncGenerator<EventBatch, void> {
    if (narrow === undefined) return yield advance({ events: [], position: end, caughtUp: true });
    const { connection, release } = source.lease();
    let subscription: NodeSubscription | undefined;
    const close = (): void => subscription?.end();
    try {
      const request = subscribe(position === undefined ? undefined : commitOf(position), narrow);
      const opening = nodeSubscription(connection, request, matches, batchSize, timeoutMs);
      subscription = await opened(opening, timeoutMs, stop);
      stop.addEventListener('abort', close);
      while (!stop.aborted) {
        const taken = await subscription.take(batchSize, timeoutMs);
        if (stop.aborted) return;
        if (taken === undefined) {
          subscription.silent(timeoutMs);
          throw new UnavailableError(`EventStoreDB sent nothing of the log for ${timeoutMs} ms`);
        }
        const seen =
          taken.position === undefined || (position !== undefined && taken.position < position)
            ? position
            : taken.position;
        const reached = taken.caughtUp ? subscription.reached(seen) : undefined;
        if (reached !== undefined && reached >= end)
          return yield advance({ events: taken.events, position: reached, caughtUp: true });
        if (taken.events.length > 0) yield advance({ events: taken.events, position: seen!, caughtUp: false });
        else position = seen;
        if (taken.caughtUp) {
          subscription.giveUp();
          throw new UnavailableError('the log of the node of EventStoreDB that was read ends before that of another');
        }
      }
    } finally {
      stop.removeEventListener('abort', close);
      close();
      release();
    }
  }

  async function* live(from: LiveTail, since: Position | undefined): AsyncGenerator<EventBatch, void> {
    const reader = await opened(from.read(position, since, matches, gatherMs), timeoutMs, stop);
    const end = (): void => reader.end();
    stop.addEventListener('abort', end);
    try {
      let suspicious = false;
      while (!stop.aborted) {
        const taken = await reader.take(batchSize, timeoutMs);
        if (stop.aborted) return;
        if (taken === undefined) {
          // No event was appended, or the server is deposed or frozen, and silent.
          const end = await source.end();
          const grown = end !== undefined && (position === undefined || end > position);
          if (!grown) tell?.(undefined);
          if (grown && suspicious) reader.giveUp();
          suspicious = grown;
          continue;
        }
        suspicious = false;
        tell?.(undefined);
        const { position: seen } = taken;
        if (seen === undefined || (position !== undefined && seen <= position)) {
          // The subscription that would have reported the log's end may have failed before.
          if (taken.caughtUp && !saidCaughtUp && position !== undefined)
            yield advance({ events: [], position, caughtUp: true });
          continue;
        }
        yield advance({ events: taken.events, position: seen, caughtUp: taken.caughtUp });
      }
    } finally {
      stop.removeEventListener('abort', end);
      end();
    }
  }

  while (!stop.aborted) {
    try {
      const end = await source.end();
      if (end !== undefined && (position === undefined || end > position)) yield* upToEnd(end);
      if (tail === undefined || stop.aborted) return;
      yield* live(tail, end);
    } catch (error) {
      if (stop.aborted) return;
      if (!(error instanceof UnavailableError)) throw error;
      failures += 1;
      if (tail === undefined && failures >= READ_ALL_TRIES) throw error;
      if (!(error instanceof TooSlowError)) {
        if (!troubled) onTrouble?.(error);
        troubled = true;
        if (tail !== undefined) tell?.(error);
      }
      // A slow reader is no failure of the server: it subscribes again at once, unless the last attempt brought no
      // batch.
      if (!(error instanceof TooSlowError) || failures > 1) await pause(nextPause(), stop);
    }
  }
}
