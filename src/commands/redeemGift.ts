/** See docs/api/gifts.md#redeem-a-gift */
import { copyWith } from '../lib/copyWith.js';
import type { GiftRedeemed } from '../domain/gift/events.js';
import { mayRedeemForMerchant, redeem } from '../domain/gift/decisions.js';
import { redemptionIdAt } from '../domain/gift/redemptionIds.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import { idFrom } from './commandIds.js';
import type { CommandContext } from './transact.js';
import { type GiftDeps, type LoadedGift, handleGift, loadGift, withPhoneOwner } from './loadGift.js';
import { refuseRepeats } from './refuseRepeats.js';

interface Redeemed {
  readonly redemption: GiftRedeemed['data'];
  readonly event: RecordedEvent;
  readonly replayed: boolean;
}

/** Looks up the gift's owner only where the caller may not redeem it for a merchant. @throws as `loadGift` */
export async function loadToRedeem(
  deps: GiftDeps,
  giftId: string,
  user: UserDocument,
  now: string,
): Promise<LoadedGift> {
  return loadGift(deps, giftId, user, now, (caller) => !mayRedeemForMerchant(caller));
}

/** @param loaded the result of `loadToRedeem`. @throws Refusal, UnavailableError */
export async function redeemGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  locationId: string,
): Promise<Redeemed> {
  const { own, replayed } = await handleGift(deps, loaded, user, context, async (gift, facts, history) => {
    const catalogue = deps.catalogue.current();
    const store = catalogue.stores.get(locationId);
    const merchantId = store === undefined ? undefined : catalogue.brands.get(store.brand_id)?.merchant_id;
    const location =
      merchantId === undefined
        ? undefined
        : { id: locationId, merchant_id: merchantId, valid: catalogue.validFor(gift.issued, merchantId) };
    // At locations of other merchants only the gift's owner may redeem it.
    const elsewhere =
      merchantId !== undefined && merchantId !== facts.caller.merchant?.id && !loaded.needsOwner(facts.caller);
    const known = elsewhere ? await withPhoneOwner(deps, gift, facts) : facts;
    const redemptionId = redemptionIdAt(context.now, idFrom(context.commandId, 'redemption'));
    const redeemed = redeem(gift, copyWith(known, { location, redemptionId }));
    refuseRepeats(
      history,
      'redeemed_too_often',
      ({ type, metadata }) => type === 'GiftRedeemed' && metadata.by.user === context.by.user,
    );
    return redeemed;
  });
  const event = own.find((one) => one.type === 'GiftRedeemed');
  if (event === undefined) throw new Error('a redeem appended no redemption');
  return { redemption: event.data as GiftRedeemed['data'], event, replayed };
}
