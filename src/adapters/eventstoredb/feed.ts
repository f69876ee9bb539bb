/** Feeds of the log: consecutive subscriptions deliver it once and in order. */
import { pause } from '../../lib/async/pause.js';
import type { EventBatch, EventFilter, Position, ReadOptions } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { pauses } from './attempts.js';
import { TooSlowError } from './failures.js';
import { matcher, serverFilter } from './filters.js';
import type { LiveTail } from './liveTail.js';
import { opened } from './opened.js';
import type { Pool } from './pool.js';
import { commitOf } from './records.js';
import { subscribe } from './requests.js';
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { Connection } from './connection.js';
import { openReads } from './reads.js';
import { subscribed, type Subscription } from './subscription.js';

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

/** A feed, and how far it has come. */
interface Feed {
  readonly source: FeedSource;
  readonly matches: ReturnType<typeof matcher>;
  readonly narrow: ReturnType<typeof serverFilter>;
  readonly batchSize: number;
  readonly gatherMs: number;
  /** Notified of every failure, and of its end, while the feed follows the log. */
  readonly report: ReadOptions['onTrouble'];
  /** Ends the feed. */
  readonly stop: AbortSignal;
  position: Position | undefined;
  /** Failures since the last batch. */
  failures: number;
  /** Whether the source was notified of a failure, and of no batch since. */
  troubled: boolean;
  saidCaughtUp: boolean;
  nextPause: ReturnType<typeof pauses>;
}

/**
 * Reads or follows the log. Positions are those of events, or of the log's end before a subscription at the same node,
 * never a checkpoint's. None lies beyond the log's end, whatever the server reports, or beyond what that node has. A
 * subscription with the filter ends at the log's end; a follower then reads the live end, which all followers share.
 */
export async function* feed(
  after: Position | undefined,
  filter: EventFilter,
  { batchSize = DEFAULT_BATCH, signal, onTrouble: report, gatherMs = 0 }: ReadOptions,
  source: FeedSource,
): AsyncGenerator<EventBatch, void> {
  const { closed, tail } = source;
  if (after !== undefined) commitOf(after);
  const stop = signal === undefined ? closed : AbortSignal.any([closed, signal]);
  const own: Feed = {
    source,
    matches: matcher(filter),
    narrow: serverFilter(filter),
    batchSize,
    gatherMs,
    report,
    stop,
    position: after,
    failures: 0,
    troubled: false,
    saidCaughtUp: false,
    nextPause: pauses(PAUSE),
  };
  while (!stop.aborted) {
    try {
      const end = await source.end();
      if (isBehind(own, end)) yield* upToEnd(own, end);
      if (tail === undefined || stop.aborted) return;
      yield* live(own, tail, end);
    } catch (error) {
      if (stop.aborted) return;
      if (!(error instanceof UnavailableError)) throw error;
      await failed(own, error);
    }
  }
}

/** Whether the feed has not come to a position. */
function isBehind({ position }: Feed, end: Position | undefined): end is Position {
  return end !== undefined && (position === undefined || end > position);
}

function advance(own: Feed, batch: EventBatch): EventBatch {
  own.position = batch.position;
  own.saidCaughtUp ||= batch.caughtUp;
  if (own.troubled) own.source.onTrouble?.(undefined);
  own.troubled = false;
  own.failures = 0;
  own.nextPause = pauses(PAUSE);
  return batch;
}

/** Counts a failure, reports it and pauses. @throws the failure that is one too many */
async function failed(own: Feed, error: UnavailableError): Promise<void> {
  const { tail, onTrouble } = own.source;
  own.failures += 1;
  if (tail === undefined && own.failures >= READ_ALL_TRIES) throw error;
  if (!(error instanceof TooSlowError)) {
    if (!own.troubled) onTrouble?.(error);
    own.troubled = true;
    if (tail !== undefined) own.report?.(error);
  }
  // A slow reader is no failure of the server: it subscribes again at once, unless the last attempt brought no batch.
  if (!(error instanceof TooSlowError) || own.failures > 1) await pause(own.nextPause(), own.stop);
}

/** Reads to the log's end by a subscription of its own, with the filter. */
async function* upToEnd(own: Feed, end: Position): AsyncGenerator<EventBatch, void> {
  const { source, matches, narrow, batchSize, stop } = own;
  const { timeoutMs } = source;
  if (narrow === undefined) return yield advance(own, { events: [], position: end, caughtUp: true });
  const { connection, release } = source.lease();
  let subscription: NodeSubscription | undefined;
  const close = (): void => subscription?.end();
  try {
    const request = subscribe(own.position === undefined ? undefined : commitOf(own.position), narrow);
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
      const { position } = own;
      const seen =
        taken.position === undefined || (position !== undefined && taken.position < position)
          ? position
          : taken.position;
      const reached = taken.caughtUp ? subscription.reached(seen) : undefined;
      if (reached !== undefined && reached >= end)
        return yield advance(own, { events: taken.events, position: reached, caughtUp: true });
      if (taken.events.length > 0) yield advance(own, { events: taken.events, position: seen!, caughtUp: false });
      else own.position = seen;
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

/** Follows the live end of the log. @param since the log's end as known before */
async function* live(own: Feed, tail: LiveTail, since: Position | undefined): AsyncGenerator<EventBatch, void> {
  const { source, matches, batchSize, gatherMs, report, stop } = own;
  const { timeoutMs } = source;
  const reader = await opened(tail.read(own.position, since, matches, gatherMs), timeoutMs, stop);
  const end = (): void => reader.end();
  stop.addEventListener('abort', end);
  try {
    let suspicious = false;
    while (!stop.aborted) {
      const taken = await reader.take(batchSize, timeoutMs);
      if (stop.aborted) return;
      if (taken === undefined) {
        // No event was appended, or the server is deposed or frozen, and silent.
        const grown = isBehind(own, await source.end());
        if (!grown) report?.(undefined);
        if (grown && suspicious) reader.giveUp();
        suspicious = grown;
        continue;
      }
      suspicious = false;
      report?.(undefined);
      const { position } = own;
      const { position: seen } = taken;
      if (seen === undefined || (position !== undefined && seen <= position)) {
        // The subscription that would have reported the log's end may have failed before.
        if (taken.caughtUp && !own.saidCaughtUp && position !== undefined)
          yield advance(own, { events: [], position, caughtUp: true });
        continue;
      }
      yield advance(own, { events: taken.events, position: seen, caughtUp: taken.caughtUp });
    }
  } finally {
    stop.removeEventListener('abort', end);
    end();
  }
}

/**
 * A subscription at one node: the node reports that it has caught up with its own log only. After an election a
 * connection may still lead to the deposed leader, which serves for a while without knowing it. Other connections lead
 * to the new leader, whose log goes further.
 */
interface NodeSubscription extends Subscription {
  /**
   * The position up to which all matching events are delivered, once the node has caught up; `seen`: the last one
   * delivered.
   */
  reached(seen: Position | undefined): Position | undefined;
}

/** Subscribes as `subscribed` does, after reading where the node's log ends. */
async function nodeSubscription(
  connection: Connection,
  request: ReadReq,
  matches: (stream: string, type: string) => boolean,
  most: number,
  timeoutMs: number,
): Promise<NodeSubscription> {
  const end = await openReads(connection, timeoutMs).endAt();
  const subscription = await subscribed(connection, request, matches, most);
  return {
    ...subscription,
    reached(seen) {
      // The connection may have moved to another node in between.
      if (end.position === undefined || end.node !== subscription.node()) return seen;
      return seen !== undefined && seen > end.position ? seen : end.position;
    },
  };
}
