import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { ClientReadableStream } from '@grpc/grpc-js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Connection, Heard } from './connection.js';
import { failureOf } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { openWaking } from './waking.js';
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

/** @param most events taken at once; about twice as many are kept ready, the rest waits at the server */
export async function subscribed(
  connection: Connection,
  request: ReadReq,
  matches: (stream: string, type: string) => boolean,
  most: number,
): Promise<Subscription> {
  const heard: Heard<ClientReadableStream<ReadResp>> = await connection
    .call((client, metadata, options) => client.read(request, metadata, options))
    .catch((error: unknown) => {
      throw failureOf(error, {});
    });
  const { call } = heard;
  const high = Math.max(LEAST_READY, most * 2);
  const items: Item[] = [];
  let bytes = 0;
  let wanted = 0;
  let endReached = false;
  let live = false;
  let ended = false;
  let failure: Error | undefined;
  const waking = openWaking();

  function enqueue(item: Item): void {
    const last = items.at(-1);
    if (item.event === undefined && last !== undefined && last.event === undefined)
      last.position = item.position ?? last.position;
    else items.push(item);
    bytes += item.size;
    if (item.event !== undefined) wanted += 1;
    if (items.length >= high || bytes >= BATCH_BYTES * 2) call.pause();
  }

  function heardOf(response: ReadResp): void {
    const record = response.getEvent()?.getEvent();
    if (record !== undefined) {
      const stream = streamOf(record);
      const type = typeOf(record);
      const ours = matches(stream, type) && isOurs(record, type);
      // The log's id is no part of the log: a log without other events has no position yet.
      const position = stream === LOG_STREAM ? undefined : positionOf(record.getCommitPosition());
      enqueue({
        event: ours ? decode(record, stream, type) : undefined,
        position,
        size: ours ? record.getData_asU8().length : 0,
      });
    } else if (response.hasCheckpoint()) {
      // Checkpoints' positions are never used: some are impossible, or beyond unread events (docs/traps.md).
      enqueue({ event: undefined, position: undefined, size: 0 });
    } else if (response.hasCaughtUp()) endReached = true;
    else if (response.hasFellBehind()) endReached = live = false;
  }

  call.on('data', (response: ReadResp) => {
    // Events after an unreadable one are read again with it.
    if (failure !== undefined) return;
    try {
      heardOf(response);
    } catch (error) {
      failure ??= failureOf(error, {});
      call.cancel();
    }
    waking.wake();
  });
  call.on('error', (error) => {
    failure ??= failureOf(error, {});
    waking.wake();
  });
  call.on('end', () => {
    failure ??= new UnavailableError('EventStoreDB ended a subscription');
    waking.wake();
  });

  function collect(limit: number): Taken {
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
    bytes -= size;
    wanted -= events.length;
    if (items.length < high && bytes < BATCH_BYTES * 2) call.resume();
    live = endReached && items.length === 0;
    return { events, position, bytes: size, caughtUp: live };
  }

  return {
    async take(limit, waitMs) {
      const announced = live;
      const something = (): boolean => ended || failure !== undefined || items.length > 0 || (endReached && !announced);
      await waking.until(something, waitMs);
      if (ended) return undefined;
      if (live) await nextTurn();
      else
        await waking.until(
          () => ended || failure !== undefined || wanted >= limit || endReached || bytes >= BATCH_BYTES,
          GATHER_MS,
        );
      if (ended) return undefined;
      if (items.length > 0 || (endReached && !announced)) return collect(limit);
      if (failure !== undefined) throw failure;
      return undefined;
    },
    silent: (ms) => heard.silent(performance.now() - ms),
    giveUp: () => heard.giveUp(),
    node: () => call.getPeer(),
    end() {
      ended = true;
      call.cancel();
      waking.wake();
    },
  };
}
