/**
 * Leaves of a log's events, and the rules for making them. The rules are stored in the log itself, so that a holder of
 * the log can compute its leaves.
 */
import { fieldsApart } from '../../../domain/fieldClasses.js';
import { TREE_STREAM, type TreeEvent, type TreeStarted } from '../../../domain/treeHeads.js';
import { randomBytes } from '../../../lib/world.js';
import {
  ConflictError,
  type EventStore,
  type EventTexts,
  type ExpectedRevision,
  type RecordedEvent,
} from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { leafOf, leafOfTexts, type LeafRules } from '../format/eventLeaf.js';
import { encodeLeaf } from '../format/leaf.js';
import { hashLeaf } from '../format/merkleTree.js';

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

const SALT_BYTES = 32;

/** Appends an event of the tree to the log. @throws ConflictError, UnavailableError */
export type AppendTreeEvent = (
  stream: string,
  event: TreeEvent,
  expected: Exclude<ExpectedRevision, 'any'>,
) => Promise<RecordedEvent>;

/**
 * Leaf rules of a log; `undefined` where the log has no tree yet.
 * @throws AlteredEventError where the event that started the tree is unreadable; UnavailableError
 */
export async function findLeafRules(events: Pick<EventStore, 'read'>): Promise<LeafRules | undefined> {
  const [started] = await events.read(TREE_STREAM, { limit: 1 });
  if (started === undefined) return undefined;
  const { salt_key, apart } = started.data as Partial<TreeStarted['data']>;
  if (typeof salt_key !== 'string' || !Array.isArray(apart))
    throw new AlteredEventError(`the event at position ${started.position} is not one that starts a tree`);
  return { saltKey: salt_key, apart: new Set(apart) };
}

/**
 * Leaf rules for verifiers; `undefined` also where no leaf can be computed, since the start of the tree was altered.
 */
export async function findReadableRules(events: Pick<EventStore, 'read'>): Promise<LeafRules | undefined> {
  try {
    return await findLeafRules(events);
  } catch (error) {
    if (error instanceof AlteredEventError) return undefined;
    throw error;
  }
}

/**
 * Leaf rules of a log, made where they are missing; of several processes, one makes them.
 * @throws UnavailableError, LogSealedError
 */
export async function leafRulesOf(events: Pick<EventStore, 'read'>, append: AppendTreeEvent): Promise<LeafRules> {
  const found = await findLeafRules(events);
  if (found !== undefined) return found;
  const data = { salt_key: randomBytes(SALT_BYTES).toString('base64'), apart: fieldsApart() };
  await append(TREE_STREAM, { type: 'TreeStarted', data }, 'none').catch((error: unknown) => {
    if (!(error instanceof ConflictError)) throw error;
  });
  return (await findLeafRules(events)) as LeafRules;
}
