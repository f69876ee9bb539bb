/** Makes a gift shared by URL the caller's own (docs/api/gifts.md#claim-a-gift). */
import { claim } from '../domain/gift/decisions.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CommandContext, Transacted } from './transact.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';

/** No event where the caller has claimed the gift before. @throws Refusal, UnavailableError */
export async function claimGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
): Promise<Transacted> {
  return handleGift(deps, loaded, user, context, claim);
}
