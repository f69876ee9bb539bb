import type { EventStore, EventTexts, Position, ReadOptions, RecordedEvent } from '../../ports/eventStore.js';
import { type LeafRules, leafOf, leafOfTexts } from '../../runtime/evidence/eventLeaf.js';
import { encodeLeaf } from '../../runtime/evidence/leaf.js';
import { hashLeaf } from '../../runtime/evidence/merkleTree.js';
import { findLeafRules } from './leafRules.js';

/** Of an event as stored. */
export interface Leaves {
  /** @throws MalformedEvidenceError for an event that the service can't have written */
  entry(event: RecordedEvent): Buffer;
  /** @throws as `entry` */
  hash(event: RecordedEvent): Buffer;
  /** @throws as `entry` */
  hashTexts(event: EventTexts): Buffer;
}

export function leavesOf(rules: LeafRules): Leaves {
  const entry = (event: RecordedEvent): Buffer => encodeLeaf(leafOf(event, rules));
  return {
    entry,
    hash: (event) => hashLeaf(entry(event)),
    hashTexts: (event) => hashLeaf(encodeLeaf(leafOfTexts(event, rules))),
  };
}

/** `undefined`: the log has no tree yet. @throws UnavailableError */
export async function leavesOfLog(events: Pick<EventStore, 'read'>): Promise<Leaves | undefined> {
  const rules = await findLeafRules(events);
  return rules === undefined ? undefined : leavesOf(rules);
}

export interface LeafBatch {
  readonly events: readonly Omit<EventTexts, 'data' | 'metadata'>[];
  readonly position: Position;
  /** Of the leaf of `events[index]`. @throws as `Leaves.entry` */
  hash(index: number): Buffer;
}

/** All events behind `after`, in the way that is fastest for hashing them. @throws UnavailableError */
export async function* leafBatches(
  stored: Pick<EventStore, 'readAll' | 'readTexts'>,
  leaves: Pick<Leaves, 'hash' | 'hashTexts'>,
  after: Position | undefined,
  options: ReadOptions,
): AsyncGenerator<LeafBatch, void> {
  if (stored.readTexts === undefined)
    for await (const { events, position } of stored.readAll(after, {}, options))
      yield { events, position, hash: (index) => leaves.hash(events[index] as RecordedEvent) };
  else
    for await (const { events, position } of stored.readTexts(after, options))
      yield { events, position, hash: (index) => leaves.hashTexts(events[index] as EventTexts) };
}
