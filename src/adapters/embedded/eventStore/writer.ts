/**
 * Sends the appends of a tick to the writing thread in one message, or two where there are many; or to the process that
 * commits for this one.
 */
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
import type { Background } from '../background.js';
import { type ThreadData, threadClient, writerThread } from '../thread.js';
import { type AppendOutcome, type AppendRequest, GROUP, OCCUPIED, sizeOf } from './commit.js';
import type { CommitLink } from './commitLink.js';
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
  /** The way to the process that commits for several; absent: this one commits. */
  readonly link?: CommitLink | undefined;
  readonly background?: Background | undefined;
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
  readonly settle: (outcome: AppendOutcome) => void;
  /** Called where no outcome is known. */
  readonly reject: (error: UnavailableError) => void;
}

/**
 * Opens the client of the writing thread. The first append starts the thread, unless long-lived: a process that only
 * reads has none.
 */
export function openEventWriter({
  data,
  onStored,
  onGrown,
  link,
  background,
  script = new URL('./eventStoreWorker.js', import.meta.url),
}: EventWriterOptions): EventWriter {
  const { file } = data;
  const pending = inFlight<Pending>();
  let waitingSize = 0;
  const thread = threadClient<readonly AppendRequest[], readonly AppendOutcome[]>({
    spawn: () => writerThread(script, 'event writer', data, background),
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
    if (link?.elsewhere() === true) commitElsewhere(appends, link);
    else commitHere(appends);
    return undefined;
  });
  /** Requests that another process is to commit. */
  const away = new Set<Promise<void>>();
  link?.serve(commitForOther);

  function commitHere(appends: readonly AppendRequest[]): void {
    thread.keepAlive(true);
    thread.send(appends);
  }

  /** The requests leave `pending`, whose numbers another thread may use again before they are answered. */
  function commitElsewhere(appends: readonly AppendRequest[], other: CommitLink): void {
    const requests = appends.map(([sequence]) => pending.take(sequence)!);
    const committed = commitBy(other, requests).finally(() => away.delete(committed));
    away.add(committed);
  }

  async function commitBy(other: CommitLink, requests: readonly Pending[]): Promise<void> {
    const outcomes = await other.send(requests.map(appendOf));
    if (outcomes === 'nowhere') return commitHere(requests.map((one) => appendOf(one, pending.put(one))));
    if (outcomes !== undefined) return settle(outcomes, (index) => requests[index]!);
    for (const { reject } of requests) reject(unanswered(file));
  }

  /** The requests stay one message, and so one transaction. */
  async function commitForOther(requests: readonly AppendRequest[]): Promise<readonly AppendOutcome[] | undefined> {
    const appends: AppendRequest[] = [];
    const outcomes = requests.map(
      async ([theirs, stream, expected, fields]) =>
        new Promise<AppendOutcome>((resolve, reject) => {
          const settle = (outcome: AppendOutcome): void => resolve({ ...outcome, sequence: theirs });
          appends.push([pending.put({ stream, expected, fields, settle, reject }), stream, expected, fields]);
        }),
    );
    commitHere(appends);
    return Promise.all(outcomes).catch(() => undefined);
  }

  function answer(outcomes: readonly AppendOutcome[]): void {
    settle(outcomes, (sequence) => pending.take(sequence)!);
    if (pending.size() === 0) thread.keepAlive(false);
  }

  function settle(outcomes: readonly AppendOutcome[], requestOf: (sequence: number) => Pending): void {
    let last = 0;
    for (const outcome of outcomes) {
      const request = requestOf(outcome.sequence);
      if (outcome.kind === 'appended') {
        const { revision, position, repeat } = outcome;
        if (repeat !== true) onStored({ stream: request.stream, revision, position, fields: request.fields });
        last = Math.max(last, position);
      }
      request.settle(outcome);
    }
    if (last > 0) onGrown(last);
  }

  async function add(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    if (events.length === 0) throw new RangeError('an append needs at least one event');
    const fields = fieldsOf(events);
    return new Promise<Appended>((resolve, reject) => {
      const settle = (outcome: AppendOutcome): void => {
        if (outcome.kind === 'appended')
          resolve({ revision: outcome.revision, position: positionOf(outcome.position) });
        else reject(refusalOf(outcome, stream, expected, file));
      };
      const sequence = pending.put({ stream, expected, fields, settle, reject });
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
      if (waiting.size() >= AHEAD && waiting.size() === pending.size() && away.size === 0) waiting.flush();
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
      link?.serve(undefined);
      waiting.flush();
      await Promise.all(away);
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

function appendOf({ stream, expected, fields }: Pending, sequence: number): AppendRequest {
  return [sequence, stream, expected, fields];
}

function unanswered(file: string): UnavailableError {
  return new UnavailableError(`the process that commits to ${file} has ended, or does not answer`, {
    outcomeUnknown: true,
    publicReason: 'the process that writes it has ended',
  });
}

function refusalOf(
  outcome: Exclude<AppendOutcome, { kind: 'appended' }>,
  stream: string,
  expected: ExpectedRevision,
  file: string,
): Error {
  if (outcome.kind === 'conflict') return new ConflictError(stream, expected, outcome.actual);
  return outcome.kind === 'sealed' ? new LogSealedError() : failureOf(outcome, file);
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
