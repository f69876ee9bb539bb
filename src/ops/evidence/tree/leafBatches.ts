/**
 * All events of a log with their leaves, in the way that is fastest for its engine. A second thread hashes leaves while
 * the first one reads the log, since hashing takes two thirds of the time.
 */
import { Worker } from 'node:worker_threads';
import { type Deferred, deferred } from '../../../lib/async/deferred.js';
import { VERSION } from '../../../lib/version.js';
import type {
  EventStore,
  EventTexts,
  Position,
  ReadOptions,
  RecordedEvent,
  TextBatch,
} from '../../../ports/eventStore.js';
import type { LeafRules } from '../format/eventLeaf.js';
import { HASH_BYTES, MalformedEvidenceError } from '../format/parsing.js';
import type { Leaves } from './leaves.js';

/** Number of batches that are read ahead of the caller. */
const AHEAD = 5;
/** The main thread hashes one batch in this many, since it also reads the log. */
const OWN_SHARE = 10;

export interface LeafBatch {
  readonly events: readonly Omit<EventTexts, 'data' | 'metadata'>[];
  /** Hash of the leaf of `events[index]`; `NO_LEAF` for an event that the service can't have written. */
  hash(index: number): Buffer;
}

interface LeafSource {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'readAll' | 'readTexts'>;
  readonly leaves: Pick<Leaves, 'hash' | 'hashTexts'>;
  readonly thread?: LeafThread | undefined;
}

/** Batches of the events after `after`, with their leaves. @throws UnavailableError */
export async function* leafBatches(
  { stored, leaves, thread }: LeafSource,
  after: Position | undefined,
  options: ReadOptions,
): AsyncGenerator<LeafBatch, void> {
  if (stored.readTexts === undefined)
    for await (const { events } of stored.readAll(after, {}, options))
      yield { events, hash: (index) => leafOrNone(() => leaves.hash(events[index] as RecordedEvent)) };
  else if (thread === undefined)
    for await (const batch of stored.readTexts(after, {}, options)) yield hashedHere(batch, leaves);
  else yield* hashedAhead(stored.readTexts(after, {}, options), leaves, thread);
}

function hashedHere({ events }: TextBatch, leaves: Pick<Leaves, 'hashTexts'>): LeafBatch {
  return { events, hash: (index) => leafOrNone(() => leaves.hashTexts(events[index] as EventTexts)) };
}

async function* hashedAhead(
  batches: AsyncIterable<TextBatch>,
  leaves: Pick<Leaves, 'hashTexts'>,
  thread: LeafThread,
): AsyncGenerator<LeafBatch, void> {
  const ahead: (LeafBatch | Promise<LeafBatch>)[] = [];
  let count = 0;
  for await (const batch of batches) {
    ahead.push(++count % OWN_SHARE === 0 ? hashedHere(batch, leaves) : hashedThere(batch, thread));
    if (ahead.length > AHEAD) yield await (ahead.shift() as LeafBatch | Promise<LeafBatch>);
  }
  for (const batch of ahead) yield await batch;
}

function hashedThere({ events }: TextBatch, thread: LeafThread): Promise<LeafBatch> {
  const hashed = thread.hash(events).then((hashes): LeafBatch => {
    const hash = (index: number): Buffer => hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
    return { events, hash };
  });
  // The caller may have stopped before this batch, so its failure must not count as an unhandled rejection.
  hashed.catch(() => undefined);
  return hashed;
}

export interface LeafThread {
  /**
   * Hashes of the events' leaves, one after another, with `NO_LEAF` for events without a leaf. Rejects when the thread
   * has ended.
   */
  hash(events: readonly EventTexts[]): Promise<Buffer>;
  close(): Promise<void>;
}

export interface LeafThreadData {
  readonly rules: LeafRules;
  /** Release of the process. */
  readonly version: string;
}

/** Starts the thread. Only for programs that end soon: a later start may find another release's file, which refuses. */
export function openLeafThread(rules: LeafRules, version = VERSION): LeafThread {
  const workerData: LeafThreadData = { rules, version };
  const thread = new Worker(new URL('./leafWorker.js', import.meta.url), { workerData });
  const waiting: Deferred<Buffer>[] = [];
  let failure: Error | undefined;
  thread.on('message', (hashes: Uint8Array<ArrayBuffer>) => waiting.shift()?.resolve(Buffer.from(hashes.buffer)));
  thread.on('error', (error: Error) => (failure = error));
  thread.on('exit', (code) => {
    failure ??= new Error(`the thread that hashes leaves ended with ${code}`);
    for (const one of waiting.splice(0)) one.reject(failure);
  });
  return {
    async hash(events) {
      if (failure !== undefined) throw failure;
      const answer = deferred<Buffer>();
      waiting.push(answer);
      thread.postMessage(sentTexts(events));
      return answer.promise;
    },
    async close() {
      await thread.terminate();
    },
  };
}

/** Leaf hash of an event that the service can't have written: no event has this leaf. */
export const NO_LEAF: Buffer = Buffer.alloc(HASH_BYTES);

/** Fields of events, one after another: sending the names of fields would take longer than the fields. */
export type SentTexts = readonly (string | number)[];

const FIELDS = 7;

function sentTexts(events: readonly EventTexts[]): SentTexts {
  const sent: (string | number)[] = [];
  for (const { id, stream, revision, type, at, data, metadata } of events)
    sent.push(id, stream, revision, type, at, data, metadata);
  return sent;
}

export function* textsOf(sent: SentTexts): Generator<Omit<EventTexts, 'position'>, void> {
  for (let from = 0; from < sent.length; from += FIELDS) {
    const [id, stream, revision, type, at, data, metadata] = sent.slice(from, from + FIELDS) as [
      ...[string, string, number, string, string, string, string],
    ];
    yield { id, stream, revision, type, at, data, metadata };
  }
}

/**
 * Hashes of the events' leaves, one after another, in memory of their own that can be transferred to another thread.
 */
export function hashesOf<E>(events: Iterable<E>, hash: (event: E) => Buffer): Uint8Array<ArrayBuffer> {
  const hashes: Buffer[] = [];
  for (const event of events) hashes.push(leafOrNone(() => hash(event)));
  const all = new Uint8Array(hashes.length * HASH_BYTES);
  for (const [index, one] of hashes.entries()) all.set(one, index * HASH_BYTES);
  return all;
}

function leafOrNone(hash: () => Buffer): Buffer {
  try {
    return hash();
  } catch (error) {
    if (error instanceof MalformedEvidenceError) return NO_LEAF;
    throw error;
  }
}
