/** RedeemGift: uses a gift up at a location (spec 4.3). */
import { type GiftRedeemed, redeem } from '../domain/gift.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import { idFrom } from './commandIds.js';
import type { CommandContext } from './context.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';

/** A redemption as it was made: its event's data and time. */
export interface Redeemed {
  readonly redemption: GiftRedeemed['data'];
  readonly event: RecordedEvent;
  readonly replayed: boolean;
}

/** Redeems. @throws Refusal, UnavailableError */
export async function redeemGift(deps: GiftDeps, loaded: LoadedGift, user: UserDocument, context: CommandContext, locationId: string): Promise<Redeemed> {
  const { own, replayed } = await handleGift(deps, loaded, user, context, (gift, facts) => {
    const catalogue = deps.catalogue.current();
    const store = catalogue.stores.get(locationId);
    const merchantId = store === undefined ? undefined : catalogue.brands.get(store.brand_id)?.merchant_id;
    const location = merchantId === undefined ? undefined : { id: locationId, merchant_id: merchantId, valid: catalogue.validFor(gift.issued, merchantId) };
    return redeem(gift, { ...facts, location, redemptionId: idFrom(context.commandId, 'redemption') });
  });
  const event = own.find((one) => one.type === 'GiftRedeemed');
  if (event === undefined) throw new Error('a redeem appended no redemption');
  return { redemption: event.data as GiftRedeemed['data'], event, replayed };
}
