import type { EventStore, EventTexts, RecordedEvent } from '../../../ports/eventStore.js';
import { type LeafRules, leafOf, leafOfTexts } from '../format/eventLeaf.js';
import { encodeLeaf } from '../format/leaf.js';
import { hashLeaf } from '../format/merkleTree.js';
import { findReadableRules } from './leafRules.js';

/** Makes the leaves of events as stored. */
export interface Leaves {
  /** Encoded leaf of an event. @throws MalformedEvidenceError for an event that the service can't have written */
  entry(event: RecordedEvent): Buffer;
  /** Hash of an event's leaf. @throws as `entry` */
  hash(event: RecordedEvent): Buffer;
  /** Hash of an event's leaf, made from its unparsed texts. @throws as `entry` */
  hashTexts(event: Omit<EventTexts, 'position'>): Buffer;
}

export function leavesOf(rules: LeafRules): Leaves {
  const entry = (event: RecordedEvent): Buffer => encodeLeaf(leafOf(event, rules));
  return {
    entry,
    hash: (event) => hashLeaf(entry(event)),
    hashTexts: (event) => hashLeaf(encodeLeaf(leafOfTexts(event, rules))),
  };
}

/**
 * Leaves of a log; `undefined` where the log does not hold their rules, or the rules were altered.
 * @throws UnavailableError
 */
export async function readableLeaves(events: Pick<EventStore, 'read'>): Promise<Leaves | undefined> {
  const rules = await findReadableRules(events);
  return rules === undefined ? undefined : leavesOf(rules);
}
