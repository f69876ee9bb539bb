/**
 * Rules for making the leaves of a log. They are stored in the log itself, so that a holder of the log can compute its
 * leaves.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { recordable } from '../../../commands/context.js';
import { append } from '../../../commands/transact.js';
import { FIELD_CLASSES, type FieldClasses } from '../../../domain/fieldClasses.js';
import { TREE_STREAM, type TreeStarted } from '../../../domain/treeHeads.js';
import { ConflictError, type EventStore } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import type { LeafRules } from '../format/eventLeaf.js';
import { TREE_USER } from './treeUser.js';

const SALT_BYTES = 32;
/**
 * Fields about other people. A merchant is not shown who gave or got the gift that it redeemed; no role is shown the
 * ids of other people's gifts.
 */
const OF_OTHERS = ['sender_id', 'receiver', 'receivers', 'gift_ids', 'kept'];

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
export async function leafRulesOf(events: EventStore, now: () => string): Promise<LeafRules> {
  const found = await findLeafRules(events);
  if (found !== undefined) return found;
  const data = { salt_key: randomBytes(SALT_BYTES).toString('base64'), apart: fieldsApart() };
  const started: TreeStarted = { type: 'TreeStarted', data };
  const commandId = randomUUID();
  const event = recordable([started], { commandId, correlationId: commandId, by: TREE_USER, now: now() });
  await append(events, TREE_STREAM, event, 'none').catch((error: unknown) => {
    if (!(error instanceof ConflictError)) throw error;
  });
  return (await findLeafRules(events)) as LeafRules;
}

/**
 * Fields that a proof may have to hide: secret and personal fields, who gave and got a gift, and other people's gifts.
 */
function fieldsApart(): readonly string[] {
  const classes: readonly FieldClasses[] = Object.values(FIELD_CLASSES);
  const paths = classes.flatMap(({ secret, personal }) => [...secret, ...personal]);
  return [...new Set([...OF_OTHERS, ...paths.map((path) => /^\w+/.exec(path)?.[0] ?? path)])].toSorted();
}
