/** Runs what support or a process decides about a gift: as for its users, but nobody's permission is asked. */
import { type GiftEvent, giftStream } from '../domain/gift.js';
import type { CommandContext } from './context.js';
import { type Handled, handle } from './handle.js';
import { type FoundGift, type GiftDeps, foundGift } from './loadGift.js';

/** What these commands work with. */
export type CareDeps = Pick<GiftDeps, 'events' | 'gifts'>;

/**
 * Decides on a gift and appends; a gift whose payment is charged and that is not issued yet is issued in the same
 * append. Repeating a command finds its own events and changes nothing.
 * @throws Refusal `gift_not_found`, or the decision's; UnavailableError
 */
export async function careForGift(
  deps: CareDeps,
  giftId: string,
  context: CommandContext,
  decide: (found: FoundGift) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<Handled> {
  return handle(deps.events, giftStream(giftId), context, async (history) => {
    const found = await foundGift(deps, giftId, history);
    const decided = await decide(found);
    return decided.length > 0 && found.issue !== undefined ? [found.issue, ...decided] : decided;
  });
}
