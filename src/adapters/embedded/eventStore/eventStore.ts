import { resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import { batchedAnswers } from '../../../lib/async/tickBatcher.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { refuseIfAltered } from '../openedFiles.js';
import type { EmbeddedStoreOptions } from '../options.js';
import { openSignals, type Signals } from '../signals.js';
import { unavailableOf } from '../sqlite.js';
import { type ThreadData, threadData } from '../thread.js';
import { feed, textFeed } from './feed.js';
import {
  eventLogFile,
  isPosition,
  logIdOf,
  numberOf,
  openEventLog,
  positionOf,
  refuseLostLog,
  sealEventLog,
  sealMark,
} from './log.js';
import { type EventReader, eventReader } from './reader.js';
import { openRecentAppends, type RecentAppends } from './recentAppends.js';
import { type LogTail, watchLogTail } from './logTail.js';
import { type EventWriter, type EventWriterOptions, openEventWriter } from './writer.js';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Page cache in KiB: with the index's inner pages cached, one or two reads find a stream. */
const CACHE_KIB = 16_000;

/** Streams read in one slice, which takes about 2 ms. */
const STREAMS_AT_ONCE = 100;

/** An open log: what its methods share. */
interface OpenLog {
  readonly file: string;
  readonly database: Database;
  readonly data: ThreadData;
  readonly reader: EventReader;
  readonly writer: EventWriter;
  readonly logTail: LogTail;
  readonly recentAppends: RecentAppends;
  readonly signals: Signals;
  /** The closing, once it has begun. */
  closing: Promise<void> | undefined;
}

/**
 * Opens the embedded event store. A worker thread writes, many appends with one fsync; this thread reads, in slices of
 * a few ms.
 * @throws DataFileError when the file is damaged, foreign, or missing beside read models made from it, or the folder
 * can't be used; UnavailableError when the disk is full
 */
export async function openEmbeddedEventStore({
  dir,
  openElsewhere = false,
  longLived = false,
  link,
  background,
}: EmbeddedStoreOptions & Pick<EventWriterOptions, 'link'>): Promise<EventStore> {
  const file = eventLogFile(resolve(dir));
  // The check would read the headers of files that another thread has open.
  if (!openElsewhere) refuseLostLog(file);
  const database = openEventLog(file, { readonly: true, openElsewhere });
  database.pragma(`cache_size = -${CACHE_KIB}`);
  const logId = openedLogId(database, file);
  const data = threadData(file, { longLived, openElsewhere });
  const reader = eventReader(database, file);
  const sealed = sealMark(database);
  const logTail = watchLogTail(() => reader.end(), { wal: `${file}-wal` });
  const recentAppends = openRecentAppends();
  const writer = openEventWriter({ data, link, background, onStored: recentAppends.add, onGrown: logTail.grew });
  const signals = openSignals(dir, ({ kind }) => {
    if (kind === 'wanted') logTail.poll();
  });
  const log: OpenLog = { file, database, data, reader, writer, logTail, recentAppends, signals, closing: undefined };
  return {
    logId,
    engine: 'embedded',
    isPosition,
    ...writes(log),
    ...reads(log),
    ...ends(log),
    async sealed() {
      refuseWhenClosed(log);
      return sealed();
    },
    async ping() {
      await writer.loaded;
      ping(log);
    },
    async close() {
      log.closing ??= close(log);
      await log.closing;
    },
  };
}

function refuseWhenClosed({ closing }: OpenLog): void {
  if (closing !== undefined) throw new UnavailableError('the event store is closed');
}

function writes(log: OpenLog): Pick<EventStore, 'append' | 'appendInOrder' | 'seal'> {
  const { file, writer } = log;
  return {
    async append(stream, events, expected) {
      refuseWhenClosed(log);
      return writer.append(stream, events, expected);
    },
    async appendInOrder(appends) {
      refuseWhenClosed(log);
      await writer.appendInOrder(appends);
    },
    async seal() {
      refuseWhenClosed(log);
      sealEventLog(file);
    },
  };
}

/** A part of a stream that is still to be read, and the events that were read of it. */
interface StreamSlice {
  readonly stream: string;
  readonly from: number;
  readonly limit: number;
  readonly into: RecordedEvent[];
}

function reads(log: OpenLog): Pick<EventStore, 'read' | 'readAll' | 'readTexts' | 'unsequenced' | 'follow'> {
  const { reader, logTail, recentAppends } = log;
  const closed = (): boolean => log.closing !== undefined;
  const readSlice = batchedAnswers(
    ({ stream, from, limit, into }: StreamSlice) => {
      refuseWhenClosed(log);
      return reader.readStream(stream, from, limit, into);
    },
    { atOnce: STREAMS_AT_ONCE, around: (work) => (closed() ? work() : reader.inSnapshot(work)) },
  );
  return {
    async read(stream, { from = 0, limit = Number.MAX_SAFE_INTEGER } = {}) {
      refuseWhenClosed(log);
      const events: RecordedEvent[] = [];
      while (await readSlice({ stream, from: from + events.length, limit: limit - events.length, into: events }));
      return events;
    },
    readAll(after, filter = {}, options = {}) {
      refuseWhenClosed(log);
      return feed(after, filter, options, { reader, closed });
    },
    readTexts(after, filter = {}, options = {}) {
      refuseWhenClosed(log);
      return textFeed(after, filter, options, { reader, closed });
    },
    async unsequenced(limit) {
      refuseWhenClosed(log);
      return reader.unsequenced(limit);
    },
    follow(after, filter = {}, options = {}) {
      refuseWhenClosed(log);
      return feed(after, filter, options, { reader, logTail, recentAppends, closed });
    },
  };
}

/** What is said of the log's end and of its positions. */
function ends(log: OpenLog): Pick<EventStore, 'end' | 'startOfLast' | 'reaches' | 'local' | 'timeBounds'> {
  const { reader } = log;
  /** The log's end as read for all calls of one microtask turn. */
  let known: { readonly end: Position | undefined } | undefined;
  return {
    async end() {
      refuseWhenClosed(log);
      return positionOrNone(reader.end());
    },
    async startOfLast(count) {
      refuseWhenClosed(log);
      return positionOrNone(reader.startOfLast(count));
    },
    async reaches(position) {
      refuseWhenClosed(log);
      return isPosition(position) && numberOf(position) <= reader.end();
    },
    local: {
      end() {
        refuseWhenClosed(log);
        if (known === undefined) {
          known = { end: positionOrNone(reader.end()) };
          queueMicrotask(() => (known = undefined));
        }
        return known.end;
      },
      lastOf(stream) {
        refuseWhenClosed(log);
        return positionOrNone(reader.lastOf(stream));
      },
    },
    async timeBounds({ from = FIRST_TIME, to = LAST_TIME, after }) {
      refuseWhenClosed(log);
      const bounds = await timeBounds(log, from, to, numberOf(after));
      return bounds && { after: positionOrNone(bounds.first - 1), through: positionOf(bounds.last) };
    },
  };
}

/** @throws UnavailableError while the log can't be read or written */
function ping(log: OpenLog): void {
  const { file, data, reader, writer } = log;
  refuseWhenClosed(log);
  // The files are checked first: moved or altered files may be the reason why a read fails.
  try {
    refuseIfAltered(file, data.opened);
  } catch (error) {
    throw unavailableOf(error, file);
  }
  reader.end();
  writer.ping();
}

async function close({ signals, logTail, writer, database }: OpenLog): Promise<void> {
  signals.close();
  logTail.close();
  await writer.close();
  database.close();
}

function positionOrNone(position: number): Position | undefined {
  return position === 0 ? undefined : positionOf(position);
}

function openedLogId(database: Database, file: string): string {
  try {
    return logIdOf(database, file);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Positions scanned in one turn, which takes about 5 ms. */
const SLICE = 10_000;

/** Below and above every ISO 8601 time with a four-digit year. */
const FIRST_TIME = '';
const LAST_TIME = '~';

/**
 * The first and last position with a time in the range; `undefined` where no event matches. Times need not be in log
 * order. @throws UnavailableError where the log was closed in between
 */
async function timeBounds(
  log: OpenLog,
  from: string,
  to: string,
  after: number,
): Promise<{ readonly first: number; readonly last: number } | undefined> {
  const { reader } = log;
  const end = reader.end();
  let first = 0;
  for (let at = after; first === 0; at += SLICE) {
    if (at >= end) return undefined;
    first = reader.timedWithin('first', at, Math.min(at + SLICE, end), from, to);
    await nextTurn();
    refuseWhenClosed(log);
  }
  for (let at = end; ; at -= SLICE) {
    const last = reader.timedWithin('last', Math.max(at - SLICE, first - 1), at, from, to);
    if (last > 0) return { first, last };
    await nextTurn();
    refuseWhenClosed(log);
  }
}
