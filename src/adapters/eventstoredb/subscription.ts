import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { ClientReadableStream } from '@grpc/grpc-js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Connection, Heard } from './connection.js';
import { failureOf } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { openWaking, type Waking } from './waking.js';
import { decode, isOurs, positionOf, streamOf, typeOf } from './records.js';

/** Size in bytes at which a batch ends, whatever its number of events. */
const BATCH_BYTES = 4_000_000;
/** Least capacity of the inbox, in items. */
const LEAST_READY = 64;
/** Milliseconds for which events before the log's end are collected: large batches are cheaper. */
const GATHER_MS = 50;

export interface Taken {
  readonly events: RecordedEvent[];
  /** Position of the last event received, matching or not; `undefined` when only progress reports came. */
  readonly position: Position | undefined;
  readonly bytes: number;
  /** The server has caught up, and the inbox is empty. */
  readonly caughtUp: boolean;
}

export interface Subscription {
  /**
   * Resolves as soon as there are events, the position has advanced, or the log's end is reached.
   * @returns `undefined` when nothing came for `waitMs`, or the subscription was ended
   * @throws the failure that ended it (see `failureOf`), after the inbox is empty; SyntaxError for an event that is not
   * JSON
   */
  take(most: number, waitMs: number): Promise<Taken | undefined>;
  /** As `Heard.silent`, for the last `ms`. */
  silent(ms: number): void;
  /** As `Heard.giveUp`. */
  giveUp(): void;
  /** Address of the node that delivers the events, once it has delivered data. */
  node(): string;
  end(): void;
}

interface Item {
  /** The event; absent where it does not match. Decoded at once, so that the library's message can be freed. */
  readonly event: RecordedEvent | undefined;
  readonly size: number;
  /** Position of the event; absent for a progress report. */
  position: Position | undefined;
}

/** What a subscription has received and not yet given out. */
interface Inbox {
  readonly heard: Heard<ClientReadableStream<ReadResp>>;
  readonly matches: (stream: string, type: string) => boolean;
  /** Number of items at which the server is asked to pause. */
  readonly high: number;
  readonly items: Item[];
  /** Sizes of the items. */
  bytes: number;
  /** Events among the items. */
  events: number;
  /** Whether the server has reported the log's end, and has not fallen behind since. */
  endReached: boolean;
  /** Whether the log's end was given out. */
  live: boolean;
  ended: boolean;
  failure: Error | undefined;
  readonly waking: Waking;
}

/** @param most events taken at once; about twice as many are kept ready, the rest waits at the server */
export async function subscribed(
  connection: Connection,
  request: ReadReq,
  matches: (stream: string, type: string) => boolean,
  most: number,
): Promise<Subscription> {
  const heard = await connection
    .call((client, metadata, options) => client.read(request, metadata, options))
    .catch((error: unknown) => {
      throw failureOf(error, {});
    });
  const inbox: Inbox = {
    heard,
    matches,
    high: Math.max(LEAST_READY, most * 2),
    items: [],
    bytes: 0,
    events: 0,
    endReached: false,
    live: false,
    ended: false,
    failure: undefined,
    waking: openWaking(),
  };
  fill(inbox);
  return {
    take: async (limit, waitMs) => take(inbox, limit, waitMs),
    silent: (ms) => heard.silent(performance.now() - ms),
    giveUp: () => heard.giveUp(),
    node: () => heard.call.getPeer(),
    end() {
      inbox.ended = true;
      heard.call.cancel();
      inbox.waking.wake();
    },
  };
}

/** Puts what the server sends into the inbox. */
function fill(inbox: Inbox): void {
  const { call } = inbox.heard;
  const fail = (error: Error): void => {
    inbox.failure ??= error;
    inbox.waking.wake();
  };
  call.on('data', (response: ReadResp) => {
    // Events after an unreadable one are read again with it.
    if (inbox.failure !== undefined) return;
    try {
      receive(inbox, response);
    } catch (error) {
      inbox.failure ??= failureOf(error, {});
      call.cancel();
    }
    inbox.waking.wake();
  });
  call.on('error', (error) => fail(failureOf(error, {})));
  call.on('end', () => fail(new UnavailableError('EventStoreDB ended a subscription')));
}

function receive(inbox: Inbox, response: ReadResp): void {
  const record = response.getEvent()?.getEvent();
  if (record !== undefined) {
    const stream = streamOf(record);
    const type = typeOf(record);
    const ours = inbox.matches(stream, type) && isOurs(record, type);
    // The log's id is no part of the log: a log without other events has no position yet.
    const position = stream === LOG_STREAM ? undefined : positionOf(record.getCommitPosition());
    enqueue(inbox, {
      event: ours ? decode(record, stream, type) : undefined,
      position,
      size: ours ? record.getData_asU8().length : 0,
    });
  } else if (response.hasCheckpoint()) {
    // Checkpoints' positions are never used: some are impossible, or beyond unread events (docs/traps.md).
    enqueue(inbox, { event: undefined, position: undefined, size: 0 });
  } else if (response.hasCaughtUp()) inbox.endReached = true;
  else if (response.hasFellBehind()) inbox.endReached = inbox.live = false;
}

function enqueue(inbox: Inbox, item: Item): void {
  const { items } = inbox;
  const last = items.at(-1);
  if (item.event === undefined && last !== undefined && last.event === undefined)
    last.position = item.position ?? last.position;
  else items.push(item);
  inbox.bytes += item.size;
  if (item.event !== undefined) inbox.events += 1;
  if (items.length >= inbox.high || inbox.bytes >= BATCH_BYTES * 2) inbox.heard.call.pause();
}

async function take(inbox: Inbox, limit: number, waitMs: number): Promise<Taken | undefined> {
  const { waking, items, live: announced } = inbox;
  const stopped = (): boolean => inbox.ended || inbox.failure !== undefined;
  const something = (): boolean => items.length > 0 || (inbox.endReached && !announced);
  await waking.until(() => stopped() || something(), waitMs);
  if (inbox.ended) return undefined;
  if (inbox.live) await nextTurn();
  else
    await waking.until(
      () => stopped() || inbox.events >= limit || inbox.endReached || inbox.bytes >= BATCH_BYTES,
      GATHER_MS,
    );
  if (inbox.ended) return undefined;
  if (something()) return collect(inbox, limit);
  if (inbox.failure !== undefined) throw inbox.failure;
  return undefined;
}

function collect(inbox: Inbox, limit: number): Taken {
  const { items } = inbox;
  const events: RecordedEvent[] = [];
  let position: Position | undefined;
  let size = 0;
  let count = 0;
  for (const item of items) {
    if (item.event !== undefined) {
      if (events.length >= limit || (size > 0 && size + item.size > BATCH_BYTES)) break;
      events.push(item.event);
      size += item.size;
    }
    position = item.position ?? position;
    count += 1;
  }
  items.splice(0, count);
  inbox.bytes -= size;
  inbox.events -= events.length;
  if (items.length < inbox.high && inbox.bytes < BATCH_BYTES * 2) inbox.heard.call.resume();
  inbox.live = inbox.endReached && items.length === 0;
  return { events, position, bytes: size, caughtUp: inbox.live };
}
