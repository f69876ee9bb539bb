import type { GiftEvent, GiftUnredeemed } from '../domain/gift/events.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import { type CommandContext, type Transacted, transactOn } from './transact.js';
import { type FoundGift, giftSource, withIssue } from './giftSource.js';
import { type GiftDeps, unissuedGift } from './loadGift.js';
import { refuseRepeats } from './refuseRepeats.js';

export type SupportDeps = Pick<GiftDeps, 'events' | 'gifts'>;

/**
 * Carries out support's decision about a gift, whoever owns it. A block can always be ended, whatever was done before.
 * A gift that is paid for and not issued yet is issued in the same append.
 * @throws Refusal `gift_not_found`, `supported_too_often`, or as `decide`; UnavailableError
 */
export async function supportAction(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  decide: (found: FoundGift) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<Transacted> {
  const source = giftSource(deps.events, giftId, async () => unissuedGift(deps, giftId));
  return transactOn(deps.events, source, context, async (found, history) => {
    const decided = await decide(found);
    for (const { type } of decided)
      if (type !== 'GiftUnblocked')
        refuseRepeats(history, 'supported_too_often', (event) => event.type === type && isBySupport(event));
    return withIssue(found, decided);
  });
}

/** Disputes block gifts without a user, and a merchant's users reverse redemptions, too. */
function isBySupport({ type, data, metadata }: RecordedEvent): boolean {
  return type === 'GiftUnredeemed'
    ? (data as GiftUnredeemed['data']).by_support === true
    : metadata.by.user !== undefined;
}
