import { resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import { batchedAnswers } from '../../../lib/async/tickBatcher.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { refuseUnlessInPlace } from '../openedFiles.js';
import type { EmbeddedStoreOptions } from '../options.js';
import { openSignals } from '../signals.js';
import { unavailableOf } from '../sqlite.js';
import { threadData } from '../thread.js';
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
import { FIRST_TIME, LAST_TIME, timeBounds } from './timeBounds.js';
import { eventReader } from './reader.js';
import { openRecentAppends } from './recentAppends.js';
import { watchLogTail } from './logTail.js';
import { openEventWriter } from './writer.js';

/** Page cache in KiB: with the index's inner pages cached, one or two reads find a stream. */
const CACHE_KIB = 16_000;

/** Streams read in one slice, which takes about 2 ms. */
const STREAMS_AT_ONCE = 100;

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
}: EmbeddedStoreOptions): Promise<EventStore> {
  const file = eventLogFile(resolve(dir));
  // The check would read the headers of files that another thread has open.
  if (!openElsewhere) refuseLostLog(file);
  const database = openEventLog(file, { readonly: true, openElsewhere });
  database.pragma(`cache_size = -${CACHE_KIB}`);
  const logId = openedLogId(database, file);
  const data = threadData(file, longLived);
  const reader = eventReader(database, file);
  const sealed = sealMark(database);
  const logTail = watchLogTail(() => reader.end());
  const recentAppends = openRecentAppends();
  const writer = openEventWriter({ data, onStored: recentAppends.add, onGrown: logTail.grew });
  const signals = openSignals(dir, ({ kind }) => {
    if (kind === 'wanted') logTail.look();
  });
  let closing: Promise<void> | undefined;
  /** The log's end as read for all calls of one microtask turn. */
  let asked: { readonly end: Position | undefined } | undefined;

  function refuseWhenClosed(): void {
    if (closing !== undefined) throw new UnavailableError('the event store is closed');
  }

  const readSlice = batchedAnswers(
    ({
      stream,
      from,
      limit,
      into,
    }: {
      readonly stream: string;
      readonly from: number;
      readonly limit: number;
      readonly into: RecordedEvent[];
    }) => {
      refuseWhenClosed();
      return reader.readStream(stream, from, limit, into);
    },
    { atOnce: STREAMS_AT_ONCE, around: (work) => (closed() ? work() : reader.together(work)) },
  );

  function closed(): boolean {
    return closing !== undefined;
  }

  async function close(): Promise<void> {
    signals.close();
    logTail.close();
    await writer.close();
    database.close();
  }

  return {
    logId,
    engine: 'embedded',
    isPosition,

    async append(stream, events, expected) {
      refuseWhenClosed();
      return writer.append(stream, events, expected);
    },

    async appendInOrder(appends) {
      refuseWhenClosed();
      await writer.appendInOrder(appends);
    },

    async read(stream, { from = 0, limit = Number.MAX_SAFE_INTEGER } = {}) {
      refuseWhenClosed();
      const events: RecordedEvent[] = [];
      while (await readSlice({ stream, from: from + events.length, limit: limit - events.length, into: events }));
      return events;
    },

    readAll(after, filter = {}, options = {}) {
      refuseWhenClosed();
      return feed(after, filter, options, { reader, closed });
    },

    readTexts(after, filter = {}, options = {}) {
      refuseWhenClosed();
      return textFeed(after, filter, options, { reader, closed });
    },

    async strays(limit) {
      refuseWhenClosed();
      return reader.strays(limit);
    },

    follow(after, filter = {}, options = {}) {
      refuseWhenClosed();
      return feed(after, filter, options, { reader, logTail, recentAppends, closed });
    },

    async end() {
      refuseWhenClosed();
      return positionOrNone(reader.end());
    },

    async reaches(position) {
      refuseWhenClosed();
      return isPosition(position) && numberOf(position) <= reader.end();
    },

    local: {
      end() {
        refuseWhenClosed();
        if (asked === undefined) {
          asked = { end: positionOrNone(reader.end()) };
          queueMicrotask(() => (asked = undefined));
        }
        return asked.end;
      },
      lastOf(stream) {
        refuseWhenClosed();
        return positionOrNone(reader.lastOf(stream));
      },
    },

    async timeBounds(within) {
      refuseWhenClosed();
      const bounds = await timeBounds(
        reader,
        within.from ?? FIRST_TIME,
        within.to ?? LAST_TIME,
        numberOf(within.after),
        () => refuseWhenClosed(),
      );
      return bounds === undefined
        ? undefined
        : { after: positionOrNone(bounds.first - 1), through: positionOf(bounds.last) };
    },

    async seal() {
      refuseWhenClosed();
      sealEventLog(file);
    },

    async sealed() {
      refuseWhenClosed();
      return sealed();
    },

    async ping() {
      await writer.loaded;
      refuseWhenClosed();
      // The files are checked first: moved or altered files may be the reason why a read fails.
      try {
        refuseUnlessInPlace(file, data.opened);
      } catch (error) {
        throw unavailableOf(error, file);
      }
      reader.end();
      writer.ping();
    },

    async close() {
      closing ??= close();
      await closing;
    },
  };
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
