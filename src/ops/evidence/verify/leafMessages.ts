/** Messages to and from the thread that hashes leaves. */
import type { EventTexts } from '../../../ports/eventStore.js';
import { MalformedEvidenceError } from '../format/errors.js';
import { HASH_BYTES } from '../format/strictText.js';

/** Leaf hash of an event that the service can't have written: no event has this leaf. */
export const NO_LEAF: Buffer = Buffer.alloc(HASH_BYTES);

/** Fields of events, one after another: sending the names of fields would take longer than the fields. */
export type SentTexts = readonly (string | number)[];

const FIELDS = 7;

export function sentTexts(events: readonly EventTexts[]): SentTexts {
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

export function leafOrNone(hash: () => Buffer): Buffer {
  try {
    return hash();
  } catch (error) {
    if (error instanceof MalformedEvidenceError) return NO_LEAF;
    throw error;
  }
}
