import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { type InFlight, inFlight } from '../../lib/inFlight.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { deferred } from '../../lib/async/deferred.js';
import { openSlots, type Slots } from '../../lib/async/slots.js';
import { within } from '../../lib/async/within.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Connection } from './connection.js';
import { failureOf, StreamDeletedError } from './failures.js';
import { ALL_OURS, isInLog } from './filters.js';
import { type ServerRecord, decode, isOurs, isPosition, positionOf, streamOf, typeOf } from './records.js';
import { readLogBack, readStream, readStreamBack } from './requests.js';

/** A connection carries 100 calls, and further ones would wait silently. */
const READS_AT_ONCE = 50;
/** A read without a filter takes half the time, and the log's last event is nearly always one of ours. */
const LAST = readLogBack(undefined, 1);
/** Reads two events: the last may be of a stream that is not in the log. */
const LAST_OF_OURS = readLogBack(ALL_OURS, 2);
const PAGE = 500;

/**
 * Reads of the server. Each throws UnavailableError after `timeoutMs` without data, or when the server can't be
 * reached.
 */
export interface Reads {
  stream(stream: string, from: number, limit: number): Promise<RecordedEvent[]>;
  /**
   * Revision and position of the last event, where exactly these events are stored in sequence from revision `from` on.
   */
  standing(
    stream: string,
    ids: readonly string[],
    from: number,
  ): Promise<{ revision: number; position: Position } | undefined>;
  /** Revision of the stream's event with this id, searched from the stream's end. */
  revisionOf(stream: string, id: string): Promise<number | undefined>;
  /** Revision of the stream's last event; -1 for an empty stream. */
  last(stream: string): Promise<number>;
  lastOf(stream: string): Promise<Position | undefined>;
  end(): Promise<Position | undefined>;
  endAt(): Promise<LogEnd>;
  /** Position of the event before the log's last `count`. */
  startOfLast(count: number): Promise<Position | undefined>;
  reaches(position: Position): Promise<boolean>;
  close(): void;
}

interface LogEnd {
  readonly position: Position | undefined;
  /** Address of the node whose log ends there. */
  readonly node: string | undefined;
}

interface Identified {
  readonly id: string;
  readonly revision: number;
  readonly commit: string;
}

export function openReads(connection: Connection, timeoutMs: number): Reads {
  const slots = openReadSlots(timeoutMs);
  const running = inFlight<(error: Error) => void>();

  async function run(
    request: ReadReq,
    stream: string | undefined,
    take: (record: ServerRecord) => void,
  ): Promise<string | undefined> {
    const free = await slots.take();
    try {
      const node = await over(connection, request, timeoutMs, running, (record) => {
        slots.heard();
        take(record);
      });
      slots.heard();
      return node;
    } catch (error) {
      const failure = failureOf(error, stream === undefined ? {} : { stream });
      if (!(failure instanceof StreamDeletedError)) throw failure;
      return undefined;
    } finally {
      free();
    }
  }

  async function idsOf(request: ReadReq, stream: string): Promise<Identified[]> {
    const found: Identified[] = [];
    await run(request, stream, (record) => {
      found.push({
        id: record.getId()!.getString(),
        revision: Number(record.getStreamRevision()),
        commit: record.getCommitPosition(),
      });
    });
    return found;
  }

  async function lastOfOurs(request: ReadReq): Promise<LogEnd> {
    let last: string | undefined;
    const node = await run(request, undefined, (record) => {
      if (last === undefined && isInLog(streamOf(record))) last = record.getCommitPosition();
    });
    return { position: last === undefined ? undefined : positionOf(last), node };
  }

  async function endAt(): Promise<LogEnd> {
    const end = await lastOfOurs(LAST);
    return end.position === undefined ? lastOfOurs(LAST_OF_OURS) : end;
  }

  const newest = async (stream: string): Promise<Identified | undefined> =>
    (await idsOf(readStreamBack(stream, 1), stream))[0];

  return {
    async stream(stream, from, limit) {
      const events: RecordedEvent[] = [];
      if (limit <= 0) return events;
      await run(readStream(stream, from, limit), stream, (record) => {
        const type = typeOf(record);
        if (isOurs(record, type)) events.push(decode(record, stream, type));
      });
      return events;
    },
    async standing(stream, ids, from) {
      const found = await idsOf(readStream(stream, from, ids.length), stream);
      if (found.length < ids.length || found.some(({ id }, index) => id !== ids[index])) return undefined;
      const { revision, commit } = found.at(-1)!;
      return { revision, position: positionOf(commit) };
    },
    async revisionOf(stream, id) {
      let page = await idsOf(readStreamBack(stream, PAGE), stream);
      for (;;) {
        const match = page.find((one) => one.id === id);
        const first = page.at(-1);
        if (match !== undefined || first === undefined || first.revision === 0) return match?.revision;
        page = await idsOf(readStreamBack(stream, PAGE, first.revision - 1), stream);
      }
    },
    async last(stream) {
      return (await newest(stream))?.revision ?? -1;
    },
    async lastOf(stream) {
      const last = await newest(stream);
      return last === undefined ? undefined : positionOf(last.commit);
    },
    end: async () => (await endAt()).position,
    endAt,
    async startOfLast(count) {
      // Some of the events that are read may be of the stream that is not in the log.
      for (let limit = count + 2; ; limit *= 2) {
        let read = 0;
        const commits: string[] = [];
        await run(readLogBack(ALL_OURS, limit), undefined, (record) => {
          read += 1;
          if (isInLog(streamOf(record))) commits.push(record.getCommitPosition());
        });
        const commit = commits[count];
        if (commit !== undefined || read < limit) return commit === undefined ? undefined : positionOf(commit);
      }
    },
    async reaches(position) {
      if (!isPosition(position)) return false;
      let end: Position | undefined;
      await run(LAST, undefined, (record) => {
        end ??= positionOf(record.getCommitPosition());
      });
      return end !== undefined && end >= position;
    },
    close() {
      const closed = new UnavailableError('the event store is closed');
      slots.fail(closed);
      for (const fail of running.values()) fail(closed);
    },
  };
}

interface ReadSlots extends Pick<Slots, 'take' | 'fail'> {
  /** To be called whenever a read gets data or ends well. */
  heard(): void;
}

/**
 * A read waits for a slot as long as others are answered: behind a silent server each of them holds its slot for
 * `timeoutMs`, and the last of many would wait for a multiple of it.
 */
function openReadSlots(timeoutMs: number): ReadSlots {
  const slots = openSlots(READS_AT_ONCE);
  let heardAt = Number.NEGATIVE_INFINITY;
  return {
    async take() {
      const taking = slots.take();
      if (slots.waiting === 0) return taking;
      for (;;) {
        const free = await within(taking, timeoutMs, () => undefined);
        if (free !== undefined) return free;
        if (performance.now() - heardAt < timeoutMs) continue;
        taking.then(
          (late) => late(),
          () => undefined,
        );
        throw silence(timeoutMs);
      }
    },
    fail: (error) => slots.fail(error),
    heard() {
      heardAt = performance.now();
    },
  };
}

const silence = (timeoutMs: number): UnavailableError =>
  new UnavailableError(`EventStoreDB did not answer within ${timeoutMs} ms`);

/** Runs one read, and calls `take` for each record. @returns the address of the node that answered */
async function over(
  connection: Connection,
  request: ReadReq,
  timeoutMs: number,
  running: InFlight<(error: Error) => void>,
  take: (record: ServerRecord) => void,
): Promise<string> {
  let since = performance.now();
  const { promise, resolve, reject } = deferred<string>();
  let give: (() => void) | undefined;
  let settled = false;
  const timer = setInterval(() => {
    if (performance.now() - since < timeoutMs) return;
    reject(silence(timeoutMs));
    give?.();
  }, timeoutMs / 10);
  const number = running.put(reject);
  connection
    .call((client, metadata, options) => client.read(request, metadata, options))
    .then((heard) => {
      if (settled) return heard.call.cancel();
      give = () => {
        heard.silent(since);
        heard.call.cancel();
      };
      heard.call.on('data', (response: ReadResp) => {
        since = performance.now();
        const record = response.getEvent()?.getEvent();
        try {
          if (record !== undefined) take(record);
        } catch (error) {
          reject(error);
          heard.call.cancel();
        }
      });
      heard.call.on('error', reject);
      heard.call.on('end', () => resolve(heard.call.getPeer()));
    }, reject);
  try {
    return await promise;
  } finally {
    settled = true;
    clearInterval(timer);
    running.take(number);
  }
}
