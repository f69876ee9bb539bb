/**
 * Documents and records in one SQLite file. The opening thread reads, with a thread for many look-ups; another writes.
 */
import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import type { Logger } from 'pino';
import type { Position } from '../../../ports/eventStore.js';
import type { Body, CollectionSpec, Query, ReadStore, StoredDocument } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { refuseIfAltered } from '../openedFiles.js';
import type { Background } from '../background.js';
import type { EmbeddedStoreOptions } from '../options.js';
import { openSignals } from '../signals.js';
import { errorOfFault, readFailure } from '../sqlite.js';
import { threadData, writerThread } from '../thread.js';
import { openWriterClient, type WriterClient } from '../writerClient.js';
import type { WriterRequest } from './messages.js';
import { openReader, READ_STORE_FILE } from './file.js';
import { layoutOf, versionsOf } from './layout.js';
import { openBatchedReads } from './batchedReads.js';
import { createMemory, type Memory } from './memory.js';
import { createBatchEncoder, encodeCorrections } from './batchEncoder.js';
import { createReader } from './reader.js';
import { openRecords } from './records.js';
import type { Scrubbing } from './scrub.js';
import { readSnapshot } from './snapshot.js';
import { storedTexts } from './storedTexts.js';
import { DOCUMENTS_VERSIONS } from './tables.js';
import { createCheckpointWaiters } from './checkpointWaiters.js';

interface EmbeddedReadStoreOptions extends EmbeddedStoreOptions {
  readonly logger?: Logger | undefined;
  /** Thread that writes this store in place of its own writer; look-ups then have no thread either. */
  readonly scratchWriter?: Pick<Background, 'writerOf'> | undefined;
}

/** Milliseconds between two attempts of an operation that others delay. */
const BUSY_MS = 20;
const EMPTY_WAL_MS = 10_000;

/**
 * Several processes may share the store. Writes survive a killed process. A power cut may lose the last ones, but never
 * a document without the checkpoints after it. A missing collection reads as empty, and the first write creates it
 * without secondary indexes.
 * @throws DataFileError when the file is foreign, damaged or newer than this program; UnavailableError when the disk is
 * full or the file is locked
 */
export async function openEmbeddedReadStore({
  dir,
  logger,
  background,
  scratchWriter,
  openElsewhere = false,
  longLived = false,
}: EmbeddedReadStoreOptions): Promise<ReadStore> {
  const file = resolve(dir, READ_STORE_FILE);
  const database = openReader(file, { openElsewhere });
  const data = threadData(file, { longLived, openElsewhere });
  const reads = openReads(database, file);
  const { read, readNow, readSlowly } = reads;
  const writer = openWriterClient<WriterRequest>({
    store: 'read store',
    start: () =>
      scratchWriter?.writerOf(data) ??
      writerThread(new URL('readStoreWorker.js', import.meta.url), 'read writer', data, background),
    atOnce: true,
    errorOf: (fault) => errorOfFault(fault, file),
    // Reads after an answer must find the data that it reports as written.
    answering: reads.renew,
  });
  const encoder = createBatchEncoder(writer);
  const reader = createReader(database);
  const documents = openBatchedReads({
    read: (layout, id) => read(() => reader.get(layout, id)),
    memory: reads.memory,
    start:
      scratchWriter === undefined && availableParallelism() > 1
        ? () => new Worker(new URL('readStoreLookupWorker.js', import.meta.url), { name: 'look-ups', workerData: data })
        : undefined,
    // A projector on another thread looks up few documents at a time.
    longLived: longLived && !openElsewhere,
    onDeath: (err) =>
      logger?.warn({ err }, 'the read store: the thread that looks documents up ended, they are looked up without it'),
  });
  const checkpointOf = database
    .prepare<[string], Position>('SELECT position FROM checkpoint WHERE projection = ?')
    .pluck();
  const waiters = createCheckpointWaiters({
    version: reads.version,
    checkpoint: (projection) => readNow(() => checkpointOf.get(projection)),
    wanted: () => signals.send({ kind: 'wanted' }),
  });
  const signals = openSignals(dir, (signal) => {
    if (signal.kind !== 'stored') return;
    reads.renew();
    for (const { projection, position } of signal.checkpoints) waiters.advanced(projection, position);
  });
  const records = openRecords(database, { read: readNow, change: (request) => writer.call(request) });

  return {
    engine: 'embedded',
    records,
    async ensure(collection, { deferIndexes = false } = {}) {
      await writer.call<void>({ kind: 'ensure', layout: layoutOf(collection), deferIndexes });
    },
    async drop(collection) {
      const layout = layoutOf(collection);
      const rowsAreLeft = await writer.call<boolean>({ kind: 'drop', layout });
      waiters.forget(layout.name);
      while (rowsAreLeft && !(await writer.call<boolean>({ kind: 'wipe' })));
    },
    get<B extends Body>(collection: CollectionSpec, id: string) {
      return documents.get(collection, id) as Promise<StoredDocument<B> | undefined>;
    },
    async getMany<B extends Body>(collection: CollectionSpec, ids: readonly string[]) {
      return readSlowly(() => reader.getMany<B>(collection, ids));
    },
    async find<B extends Body>(collection: CollectionSpec, query: Query) {
      return readSlowly(() => reader.find<B>(collection, query));
    },
    async count(collection, query) {
      return read(() => reader.count(collection, query));
    },
    async misindexed(collection, ids) {
      return readSlowly(() => reader.misindexed(collection, ids));
    },
    async write(batches) {
      await encoder.write(batches);
      const written = batches.flatMap(({ checkpoint }) => checkpoint ?? []);
      if (written.length === 0) return;
      for (const { projection, position } of written) waiters.advanced(projection, position);
      signals.send({ kind: 'stored', checkpoints: written });
    },
    async correct(collection, corrections) {
      return writer.call<boolean[]>({
        kind: 'correct',
        layout: layoutOf(collection),
        corrections: encodeCorrections(collection, corrections),
      });
    },
    async checkpoint(projection) {
      return readNow(() => checkpointOf.get(projection));
    },
    reached: (projection, position, timeoutMs) => waiters.reached(projection, position, timeoutMs),
    ...builds(database, reads, writer),
    scrub: async () => scrub(writer, reads.renew),
    texts: () => storedTexts(database, readNow),
    async boundTo(logId) {
      return writer.call<string>({ kind: 'bind', logId });
    },
    async ping() {
      await writer.loaded;
      // The files are checked first: moved or altered files may be the reason why a read fails.
      try {
        refuseIfAltered(file, data.opened);
      } catch (error) {
        throw reads.failure(error);
      }
      reads.version();
      writer.ping();
    },
    async close() {
      waiters.close();
      signals.close();
      await Promise.all([writer.close(), documents.close()]);
      reads.renew();
      database.close();
    },
  };
}

/** Which build of a read model is in use. */
function builds(
  database: Database,
  { readNow }: Reads,
  writer: WriterClient<WriterRequest>,
): Pick<ReadStore, 'active' | 'versions' | 'activate' | 'deactivate'> {
  const activeVersion = database.prepare<[string], number>('SELECT version FROM pointer WHERE name = ?').pluck();
  return {
    async active(name) {
      return readNow(() => activeVersion.get(name));
    },
    async versions(name) {
      return readNow(() => versionsOf(database, name));
    },
    async activate(name, version, { expected } = {}) {
      return writer.call<boolean>({ kind: 'activate', name, version, expected });
    },
    async deactivate(name, version) {
      return writer.call<boolean>({ kind: 'deactivate', name, version });
    },
  };
}

/** The reads of one connection, which share the snapshot of a turn of the event loop. */
interface Reads {
  /** @throws what the file's fault means; so do all reads */
  read<T>(work: () => T): T;
  readSlowly<T>(work: () => Promise<T>): Promise<T>;
  /** Reads what is stored now, also where the turn began before. */
  readNow<T>(work: () => T): T;
  /** The file's version, which every write changes. */
  version(): number;
  /** Documents that were read before, as new as the snapshot. */
  memory(): Memory;
  /** See `Snapshot.renew`. */
  readonly renew: () => void;
  /** What callers get for an error of the file. */
  failure(error: unknown): unknown;
}

function openReads(database: Database, file: string): Reads {
  const { hold, renew } = readSnapshot(database);
  const dataVersion = database.prepare<[], number>('PRAGMA data_version').pluck();
  const documentsVersions = database
    .prepare<[], readonly [collection: string, version: string]>(DOCUMENTS_VERSIONS)
    .raw();
  const memory = createMemory();
  /** The file's and the collections' versions of the documents in memory. */
  let seen: number | undefined;
  const seenDocuments = new Map<string, string>();
  /** Whether the documents in memory are as new as the snapshot. */
  let isMemoryNew = false;

  function takeSnapshot(): void {
    if (hold()) isMemoryNew = false;
  }

  /** Most reads need no document in memory, so only those that do look for changes. */
  function renewMemory(): void {
    if (isMemoryNew) return;
    const version = dataVersion.get();
    if (version !== seen)
      for (const [collection, documents] of documentsVersions.all()) {
        if (seenDocuments.get(collection) === documents) continue;
        memory.forget(collection);
        seenDocuments.set(collection, documents);
      }
    seen = version;
    isMemoryNew = true;
  }

  const failure = (error: unknown): Error => readFailure(error, database, file, 'read store');

  function read<T>(work: () => T): T {
    try {
      takeSnapshot();
      return work();
    } catch (error) {
      throw failure(error);
    }
  }

  function readNow<T>(work: () => T): T {
    renew();
    return read(work);
  }

  return {
    read,
    readNow,
    async readSlowly(work) {
      try {
        takeSnapshot();
        return await work();
      } catch (error) {
        throw failure(error);
      }
    },
    version: () => readNow(() => dataVersion.get() as number),
    memory: () =>
      read(() => {
        renewMemory();
        return memory;
      }),
    renew,
    failure,
  };
}

/** Rewrites all tables with personal data, then empties the WAL, which holds their old pages. */
async function scrub(writer: WriterClient<WriterRequest>, renew: () => void): Promise<void> {
  const owner = randomUUID();
  for (let outcome: string | undefined; outcome !== 'done';) {
    outcome = await writer.call<ReturnType<Scrubbing['step']>>({ kind: 'scrub', owner });
    if (outcome === 'busy') await sleep(BUSY_MS);
  }
  for (const until = performance.now() + EMPTY_WAL_MS; ;) {
    renew();
    if (await writer.call<boolean>({ kind: 'empty WAL' })) return;
    if (performance.now() > until) throw new UnavailableError('the read store: its WAL is being read all the time');
    await sleep(BUSY_MS);
  }
}
