import type { GiftEvent } from '../domain/gift/events.js';
import type { CommandContext } from './context.js';
import { type FoundGift, giftSource, withIssue } from './giftSource.js';
import { type GiftDeps, unissuedGift } from './loadGift.js';
import { type Transacted, transactOn } from './transact.js';

export type SupportDeps = Pick<GiftDeps, 'events' | 'gifts'>;

/**
 * Whoever owns the gift. One that is paid for and not issued yet is issued in the same append.
 * @throws Refusal `gift_not_found`, or the decision's; UnavailableError
 */
export async function supportAction(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  decide: (found: FoundGift) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<Transacted> {
  const source = giftSource(deps.events, giftId, async () => unissuedGift(deps, giftId));
  return transactOn(deps.events, source, context, async (found) => withIssue(found, await decide(found)));
}
