/** Retries or discards the parked work of a group, piece by piece (docs/support.md#parked-work-by-group). */
import { type CommandContext, partOf } from '../../commands/context.js';
import type { ParkedDeps } from '../../commands/findParked.js';
import type { ParkedOutcome, retryParked } from '../../commands/parkedWork.js';
import { Refusal } from '../../domain/refusal.js';
import type { EventStore } from '../../ports/eventStore.js';
import { type ParkedGroup, parkedGroupId, parkedGroups } from './groups.js';
import { type ParkedEntry, parkedInLog } from './parkedView.js';

/** Groups of what waits for a person. @throws UnavailableError */
export async function waitingGroups(events: EventStore): Promise<ParkedGroup[]> {
  return parkedGroups((await parkedInLog(events)).filter(isWaiting));
}

export interface GroupMembers {
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

const isWaiting = ({ document }: ParkedEntry): boolean => document.state === 'parked';

export interface PieceOutcome {
  readonly id: string;
  /** `unchanged`: another command had decided on it by then; `refused`: see `refusal`. */
  readonly outcome: 'done' | 'unchanged' | 'refused';
  readonly refusal?: Refusal;
  readonly position?: string;
}

/**
 * Decides on each piece once, whatever is repeated or interrupted: what was decided is not a waiting member any more,
 * and a piece that another command decides on concurrently is left as that has it.
 * @throws UnavailableError; what was done by then is done
 */
export async function* decidePieces(
  deps: ParkedDeps,
  pieces: readonly ParkedEntry[],
  {
    decide,
    context,
    reason,
  }: { readonly decide: typeof retryParked; readonly context: CommandContext; readonly reason: string },
): AsyncGenerator<PieceOutcome, void> {
  for (const { id } of pieces) {
    try {
      yield outcomeOf(await decide(deps, id, partOf(context), reason));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      yield { id, outcome: 'refused', refusal: error };
    }
  }
}

const outcomeOf = ({ id, own }: ParkedOutcome): PieceOutcome =>
  own === undefined ? { id, outcome: 'unchanged' } : { id, outcome: 'done', position: own.position };
