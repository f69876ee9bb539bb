/** ClaimGift: makes a gift shared by URL the caller's own (decisions 2). */
import { claim } from '../domain/gift.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CommandContext } from './context.js';
import type { Handled } from './handle.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';

/** Claims; the owner again changes nothing. @throws Refusal, UnavailableError */
export async function claimGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
): Promise<Handled> {
  return handleGift(deps, loaded, user, context, claim);
}
