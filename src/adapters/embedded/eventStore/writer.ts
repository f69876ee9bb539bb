/**
 * The appending thread's side of the writing thread: gathers the appends of one tick, sends them in one message, or two
 * where there are many, and hands out the answers.
 */
import { Worker } from 'node:worker_threads';
import type { Appended, ExpectedRevision, NewEvent, StreamAppend } from '../../../ports/eventStore.js';
import { ConflictError, EventTooLargeError, LogSealedError, MAX_APPEND_BYTES } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { errorOfFault } from '../sqlite.js';
import { type ThreadData, endThread, loaded } from '../thread.js';
import type { AppendOutcome, AppendRequest } from './commit.js';
import { GROUP, sizeOf } from './commit.js';
import type { WriterAnswer, WriterMessage } from './eventStoreWorker.js';
import { positionOf } from './log.js';
import type { StoredAppend } from './recentAppends.js';

/** Appends through a thread of its own. */
export interface EventWriter {
  /** As `EventStore.append`. */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;
  /** As `EventStore.appendInOrder`. */
  appendInOrder(appends: readonly StreamAppend[]): Promise<void>;
  /** Resolves when the thread has loaded everything, where it is started at once. */
  readonly loaded: Promise<void>;
  /**
   * Whether there is a thread that writes, or one can be had. Starts another where one has died. @throws
   * UnavailableError until that one works
   */
  ping(): void;
  /**
   * Resolves when everything appended before is answered and the thread has ended; nothing may be appended any more.
   */
  close(): Promise<void>;
}

/** What the writer is given. */
export interface EventWriterOptions {
  /** What the thread is started with. A connection of this thread must have the event log open all the while. */
  readonly data: ThreadData;
  /** Called with each append that was stored, in log order, before anybody learns of it. */
  readonly onStored: (append: StoredAppend) => void;
  /** Called with the number of the last position of each group that was stored. */
  readonly onGrown: (position: number) => void;
  /** The thread's script. */
  readonly script?: URL;
}

/**
 * So many appends are sent before the turn of the event loop ends where the writer has nothing else to do: under load
 * it then writes them while others are still being decided. Fewer would not be worth an fsync.
 */
const AHEAD = 16;

interface Pending {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly fields: readonly string[];
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Starts no thread before the first append, unless the process is long-lived: one that only reads has none. A thread
 * that dies is started again by the next append, or `ping`.
 */
export function openEventWriter({
  data,
  onStored,
  onGrown,
  script = new URL('./eventStoreWorker.js', import.meta.url),
}: EventWriterOptions): EventWriter {
  const { file } = data;
  const pending = new Map<number, Pending>();
  let sequence = 0;
  let gathered: AppendRequest[] = [];
  let gatheredSize = 0;
  let worker: Worker | undefined;
  let closing = false;
  /** Why there is no writer, until there is one again. */
  let failure: UnavailableError | undefined;

  function start(): Worker {
    const started = new Worker(script, { workerData: data });
    let cause: Error | undefined;
    started.on('message', (message: WriterAnswer) => {
      failure = undefined;
      if (message !== 'ready') answer(message);
    });
    started.on('error', (error: Error) => {
      cause = error;
    });
    started.on('exit', () => {
      worker = undefined;
      gathered = [];
      gatheredSize = 0;
      const ended = `the writer of ${file} ended (${cause?.message ?? 'without an error'})`;
      failure = new UnavailableError(ended, {
        outcomeUnknown: true,
        cause,
        told: 'the thread that writes it has ended',
      });
      for (const { reject } of pending.values()) reject(failure);
      pending.clear();
    });
    // It alone must not keep the process alive; an append under way must.
    started.unref();
    return started;
  }

  function answer(outcomes: readonly AppendOutcome[]): void {
    let last = 0;
    for (const outcome of outcomes) {
      const { stream, expected, fields, resolve, reject } = pending.get(outcome.sequence)!;
      if (outcome.kind === 'appended') {
        const { revision, position, repeat } = outcome;
        if (repeat !== true) onStored({ stream, revision, position, fields });
        last = Math.max(last, position);
        resolve({ revision, position: positionOf(position) });
      } else if (outcome.kind === 'conflict') reject(new ConflictError(stream, expected, outcome.actual));
      else if (outcome.kind === 'sealed') reject(new LogSealedError());
      else reject(failureOf(outcome, file));
    }
    settled(outcomes.map((outcome) => outcome.sequence));
    if (last > 0) onGrown(last);
  }

  function settled(sequences: readonly number[]): void {
    for (const done of sequences) pending.delete(done);
    // The thread alone must not keep the process alive; an append under way must.
    if (pending.size === 0 && !closing) worker?.unref();
  }

  function flush(): void {
    if (gathered.length === 0) return;
    worker ??= start();
    worker.ref();
    worker.postMessage(gathered satisfies WriterMessage);
    gathered = [];
    gatheredSize = 0;
  }

  async function gather(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    const fields = fieldsOf(events);
    return new Promise<Appended>((resolve, reject) => {
      pending.set(++sequence, { stream, expected, fields, resolve, reject });
      if (gathered.push([sequence, stream, expected, fields]) === 1) setImmediate(flush);
      gatheredSize += sizeOf(fields);
      if (gathered.length >= GROUP.appends || gatheredSize >= GROUP.bytes) flush();
    });
  }

  if (data.longLived) worker = start();
  return {
    loaded: loaded(worker, true).then(() => settled([])),
    ping() {
      if (failure === undefined) return;
      worker ??= start();
      throw failure;
    },
    async append(stream, events, expected) {
      const stored = gather(stream, events, expected);
      // Nothing is at the writer but what it has answered.
      if (gathered.length >= AHEAD && gathered.length === pending.size) flush();
      return stored;
    },
    async appendInOrder(appends) {
      for (let next = 0; next < appends.length;) {
        // What goes as one message is one transaction: all of it is stored, or nothing. The next message waits for
        // that.
        flush();
        const outcomes: Promise<Appended>[] = [];
        do {
          const { stream, events, expected } = appends[next++]!;
          outcomes.push(gather(stream, events, expected));
        } while (next < appends.length && gathered.length > 0);
        flush();
        const failed = (await Promise.allSettled(outcomes)).find((outcome) => outcome.status === 'rejected');
        if (failed !== undefined) throw failed.reason;
      }
    },
    async close() {
      flush();
      if (worker === undefined) return;
      closing = true;
      await endThread(worker);
    },
  };
}

/** @throws EventTooLargeError */
function fieldsOf(events: readonly NewEvent[]): string[] {
  const fields: string[] = [];
  let bytes = 0;
  for (const { type, id, at, data, metadata } of events) {
    const dataJson = JSON.stringify(data);
    const metadataJson = JSON.stringify(metadata);
    bytes += Buffer.byteLength(dataJson) + Buffer.byteLength(metadataJson);
    fields.push(type, id, at, dataJson, metadataJson);
  }
  if (bytes > MAX_APPEND_BYTES) throw new EventTooLargeError(bytes);
  return fields;
}

/** The error as it would have been thrown on this thread. */
function failureOf(failed: AppendOutcome & { kind: 'failed' }, file: string): Error {
  const error = errorOfFault(failed, file);
  if (!(error instanceof UnavailableError) || !failed.outcomeUnknown) return error;
  return new UnavailableError(error.message, {
    outcomeUnknown: true,
    cause: error.cause,
    ...(error.told === undefined ? {} : { told: error.told }),
  });
}
