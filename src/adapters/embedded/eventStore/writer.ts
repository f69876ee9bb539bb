/** Sends the appends of a tick to the writing thread in one message, or two where there are many. */
import { Worker } from 'node:worker_threads';
import {
  type Appended,
  type ExpectedRevision,
  type NewEvent,
  type StreamAppend,
  ConflictError,
  EventTooLargeError,
  LogSealedError,
  MAX_APPEND_BYTES,
} from '../../../ports/eventStore.js';
import { tickBatcher } from '../../../lib/async/tickBatcher.js';
import { inFlight } from '../../../lib/inFlight.js';
import { AlteredEventError, UnavailableError } from '../../../ports/unavailable.js';
import { errorOfFault } from '../sqlite.js';
import { type ThreadData, threadClient } from '../thread.js';
import { type AppendOutcome, type AppendRequest, GROUP, OCCUPIED, sizeOf } from './commit.js';
import { positionOf } from './log.js';
import type { StoredAppend } from './recentAppends.js';

export interface EventWriter {
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;
  appendInOrder(appends: readonly StreamAppend[]): Promise<void>;
  readonly loaded: Promise<void>;
  ping(): void;
  close(): Promise<void>;
}

export interface EventWriterOptions {
  /** The file; a connection of this thread must keep the event log open. */
  readonly data: ThreadData;
  /** Called for each stored append, in log order, before the append's answer. */
  readonly onStored: (append: StoredAppend) => void;
  readonly onGrown: (position: number) => void;
  readonly script?: URL;
}

/**
 * Appends that an idle writer gets before the turn ends, to write them while others are decided. Fewer are not worth an
 * fsync.
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
 * Opens the client of the writing thread. The first append starts the thread, unless long-lived: a process that only
 * reads has none.
 */
export function openEventWriter({
  data,
  onStored,
  onGrown,
  script = new URL('./eventStoreWorker.js', import.meta.url),
}: EventWriterOptions): EventWriter {
  const { file } = data;
  const pending = inFlight<Pending>();
  let waitingSize = 0;
  const thread = threadClient<readonly AppendRequest[], readonly AppendOutcome[]>({
    spawn: () => new Worker(script, { workerData: data }),
    atOnce: data.longLived,
    ended: (cause) => `the writer of ${file} ended (${cause?.message ?? 'without an error'})`,
    onAnswer: answer,
    onEnd(failure) {
      waiting.clear();
      waitingSize = 0;
      for (const { reject } of pending.clear()) reject(failure);
      thread.keepAlive(false);
    },
  });
  const waiting = tickBatcher<AppendRequest>((appends) => {
    waitingSize = 0;
    thread.keepAlive(true);
    thread.send(appends);
    return undefined;
  });

  function answer(outcomes: readonly AppendOutcome[]): void {
    let last = 0;
    for (const outcome of outcomes) {
      const { stream, expected, fields, resolve, reject } = pending.take(outcome.sequence)!;
      if (outcome.kind === 'appended') {
        const { revision, position, repeat } = outcome;
        if (repeat !== true) onStored({ stream, revision, position, fields });
        last = Math.max(last, position);
        resolve({ revision, position: positionOf(position) });
      } else if (outcome.kind === 'conflict') reject(new ConflictError(stream, expected, outcome.actual));
      else if (outcome.kind === 'sealed') reject(new LogSealedError());
      else reject(failureOf(outcome, file));
    }
    if (pending.size() === 0) thread.keepAlive(false);
    if (last > 0) onGrown(last);
  }

  async function add(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    const fields = fieldsOf(events);
    return new Promise<Appended>((resolve, reject) => {
      const sequence = pending.put({ stream, expected, fields, resolve, reject });
      waitingSize += sizeOf(fields);
      if (waiting.add([sequence, stream, expected, fields]) >= GROUP.appends || waitingSize >= GROUP.bytes)
        waiting.flush();
    });
  }

  return {
    loaded: thread.loaded,
    ping: thread.ping,
    async append(stream, events, expected) {
      const stored = add(stream, events, expected);
      // The writer is idle when it has answered every append sent.
      if (waiting.size() >= AHEAD && waiting.size() === pending.size()) waiting.flush();
      return stored;
    },
    async appendInOrder(appends) {
      for (let next = 0; next < appends.length;) {
        // One message is one transaction, stored as a whole or not at all. The next message waits for its outcome.
        waiting.flush();
        const outcomes: Promise<Appended>[] = [];
        do {
          const { stream, events, expected } = appends[next++]!;
          outcomes.push(add(stream, events, expected));
        } while (next < appends.length && waiting.size() > 0);
        waiting.flush();
        const failed = (await Promise.allSettled(outcomes)).find((outcome) => outcome.status === 'rejected');
        if (failed !== undefined) throw failed.reason;
      }
    },
    async close() {
      waiting.flush();
      await thread.close();
    },
  };
}

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

function failureOf(failed: AppendOutcome & { kind: 'failed' }, file: string): Error {
  if (failed.code === OCCUPIED) return new AlteredEventError(`${file}: ${failed.message}`);
  const error = errorOfFault(failed, file);
  if (!(error instanceof UnavailableError) || !failed.outcomeUnknown) return error;
  return new UnavailableError(error.message, {
    outcomeUnknown: true,
    cause: error.cause,
    ...(error.publicReason === undefined ? {} : { publicReason: error.publicReason }),
  });
}
