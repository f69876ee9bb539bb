/** Retries or discards the parked work of a group, piece by piece (docs/support.md#parked-work-by-group). */
import type { CommandContext } from '../../commands/transact.js';
import type { ParkedDeps } from '../../commands/findParked.js';
import { discardParked, isDiscardOpen, type ParkedOutcome, type retryParked } from '../../commands/parkedWork.js';
import { PARKED_NAMES, type ParkedEvent, parkedId, parkedStream } from '../../domain/parked.js';
import { Refusal } from '../../domain/refusal.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { streamBetween } from '../history/streamBetween.js';
import { type ParkedGroup, parkedGroupId, parkedGroups } from './groups.js';
import { type ParkedEntry, parkedInLog } from './parkedView.js';

const READS_AT_ONCE = 8;

/** Groups of what waits for a person. @throws UnavailableError */
export async function waitingGroups(events: EventStore): Promise<ParkedGroup[]> {
  return parkedGroups((await parkedInLog(events)).filter(isWaiting));
}

/** Groups of interrupted discards, for the diagnosis. @throws UnavailableError */
export async function interruptedGroups(events: EventStore): Promise<ParkedGroup[]> {
  return parkedGroups(await interruptedDiscards(events, await parkedInLog(events)));
}

interface GroupMembers {
  /** Whether any work, also work that was retried or discarded since, belongs to the group. */
  readonly known: boolean;
  /** What waits for a person, in the order of the log. */
  readonly waiting: readonly ParkedEntry[];
}

/** @throws UnavailableError */
export async function groupMembers(events: EventStore, groupId: string): Promise<GroupMembers> {
  const members = (await parkedInLog(events)).filter((entry) => parkedGroupId(entry) === groupId);
  return { known: members.length > 0, waiting: members.filter(isWaiting) };
}

/**
 * Those entries whose discard was interrupted after its own event: the charge, or the notification, is still open.
 * Nothing but another discard ends it. @throws UnavailableError
 */
export async function interruptedDiscards(events: EventStore, entries: readonly ParkedEntry[]): Promise<ParkedEntry[]> {
  const discarded = entries.filter(({ document }) => document.state === 'discarded');
  const open = new Set<ParkedEntry>();
  await inParallel(discarded, READS_AT_ONCE, async (entry) => {
    if (await isDiscardOpen(events, entry.document, entry.document.changed)) open.add(entry);
  });
  return discarded.filter((entry) => open.has(entry));
}

/** Ends the interrupted discards of a group. @throws UnavailableError */
export async function finishDiscards(
  deps: ParkedDeps,
  groupId: string,
  context: CommandContext,
  reason: string,
): Promise<void> {
  const members = (await parkedInLog(deps.events)).filter((entry) => parkedGroupId(entry) === groupId);
  const open = await interruptedDiscards(deps.events, members);
  await inParallel(open, READS_AT_ONCE, async ({ id }) => void (await discardParked(deps, id, context, reason)));
}

export const isWaiting = ({ document }: ParkedEntry): boolean => document.state === 'parked';

export interface PieceOutcome {
  readonly id: string;
  /** `unchanged`: another command had decided on it by then; `refused`: see `refusal`. */
  readonly outcome: 'done' | 'unchanged' | 'refused';
  readonly refusal?: Refusal;
  readonly position?: Position;
}

/** What an earlier run of the command did, as its own events in the log tell. @throws UnavailableError */
export async function doneBefore(
  events: EventStore,
  { commandId }: Pick<CommandContext, 'commandId'>,
): Promise<readonly Required<Omit<PieceOutcome, 'refusal'>>[]> {
  const done: Required<Omit<PieceOutcome, 'refusal'>>[] = [];
  for (const name of PARKED_NAMES)
    for await (const page of streamBetween(events, parkedStream(name), '', undefined))
      for (const { data, metadata, position } of page) {
        if (metadata.commandId !== commandId) continue;
        done.push({ id: parkedId(name, (data as ParkedEvent['data']).entity), outcome: 'done', position });
      }
  return done.toSorted((one, other) => (one.position < other.position ? -1 : 1));
}

interface GroupDecision {
  readonly decide: typeof retryParked;
  readonly context: CommandContext;
  readonly reason: string;
}

/**
 * Decides on each piece once, whatever is repeated or interrupted: what was decided is not a waiting member any more,
 * and a piece that another command decides on concurrently is left as that has it.
 * @throws UnavailableError; what was done by then is done
 */
export async function decidePieces(
  deps: ParkedDeps,
  pieces: readonly ParkedEntry[],
  { decide, context, reason }: GroupDecision,
): Promise<PieceOutcome[]> {
  const outcomes: PieceOutcome[] = [];
  for (const { id } of pieces)
    outcomes.push(
      await decide(deps, id, context, reason).then(outcomeOf, (refusal: unknown): PieceOutcome => {
        if (!(refusal instanceof Refusal)) throw refusal;
        return { id, outcome: 'refused', refusal };
      }),
    );
  return outcomes;
}

const outcomeOf = ({ id, own }: ParkedOutcome): PieceOutcome =>
  own === undefined ? { id, outcome: 'unchanged' } : { id, outcome: 'done', position: own.position };
