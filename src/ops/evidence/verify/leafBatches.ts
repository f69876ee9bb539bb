/** All events of a log with their leaves, in the way that is fastest for its engine. */
import type {
  EventStore,
  EventTexts,
  Position,
  ReadOptions,
  RecordedEvent,
  TextBatch,
} from '../../../ports/eventStore.js';
import { HASH_BYTES } from '../format/strictText.js';
import { leafOrNone } from './leafMessages.js';
import type { LeafThread } from './leafThread.js';
import type { Leaves } from '../tree/leaves.js';

/** Number of batches that are read ahead of the caller. */
const AHEAD = 5;
/** The main thread hashes one batch in this many, since it also reads the log. */
const OWN_SHARE = 10;

export interface LeafBatch {
  readonly events: readonly Omit<EventTexts, 'data' | 'metadata'>[];
  readonly position: Position;
  /** Hash of the leaf of `events[index]`; `NO_LEAF` for an event that the service can't have written. */
  hash(index: number): Buffer;
}

export interface LeafSource {
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
    for await (const { events, position } of stored.readAll(after, {}, options))
      yield { events, position, hash: (index) => leafOrNone(() => leaves.hash(events[index] as RecordedEvent)) };
  else if (thread === undefined)
    for await (const batch of stored.readTexts(after, {}, options)) yield hashedHere(batch, leaves);
  else yield* hashedAhead(stored.readTexts(after, {}, options), leaves, thread);
}

function hashedHere({ events, position }: TextBatch, leaves: Pick<Leaves, 'hashTexts'>): LeafBatch {
  return { events, position, hash: (index) => leafOrNone(() => leaves.hashTexts(events[index] as EventTexts)) };
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

function hashedThere({ events, position }: TextBatch, thread: LeafThread): Promise<LeafBatch> {
  const hashed = thread.hash(events).then((hashes): LeafBatch => {
    const hash = (index: number): Buffer => hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
    return { events, position, hash };
  });
  // The caller may have stopped before this batch, so its failure must not count as an unhandled rejection.
  hashed.catch(() => undefined);
  return hashed;
}
