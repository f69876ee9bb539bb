/** Runs what support or a process decides about a gift: as for its users, but nobody's permission is asked. */
import type { GiftEvent } from '../domain/gift.js';
import type { CommandContext } from './context.js';
import { type FoundGift, giftSource, withIssue } from './giftSource.js';
import { type GiftDeps, unissuedGift } from './loadGift.js';
import { type Transacted, transactOn } from './transact.js';

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
): Promise<Transacted> {
  const source = giftSource(deps.events, giftId, async () => unissuedGift(deps, giftId));
  return transactOn(deps.events, source, context, async (found) => withIssue(found, await decide(found)));
}
