/** See docs/api/gifts.md#unredeem-a-gift */
import { copyWith } from '../lib/copyWith.js';
import type { GiftRedeemed, GiftUnredeemed } from '../domain/gift/events.js';
import { unredeem } from '../domain/gift/decisions.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CommandContext } from './transact.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';

/** `redeemed`: the event that is reversed. */
interface Unredeemed {
  readonly redeemed: RecordedEvent & { readonly data: GiftRedeemed['data'] };
  readonly event: RecordedEvent;
  readonly replayed: boolean;
}

/** `redemptionId`: an id or `latest`. @throws Refusal, UnavailableError */
export async function unredeemGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  redemptionId: string,
): Promise<Unredeemed> {
  const { own, history, replayed } = await handleGift(deps, loaded, user, context, (gift, facts) =>
    unredeem(gift, copyWith(facts, { redemptionId })),
  );
  const event = own.find((one) => one.type === 'GiftUnredeemed');
  const reversed = (event?.data as GiftUnredeemed['data'] | undefined)?.redemption_id;
  const redeemed = history.find(
    (one) => one.type === 'GiftRedeemed' && (one.data as GiftRedeemed['data']).redemption_id === reversed,
  );
  if (event === undefined || redeemed === undefined) throw new Error('an unredeem reversed no redemption');
  return { redeemed: redeemed as Unredeemed['redeemed'], event, replayed };
}
