/** Selects the events of a gift that are proven to auditors and to merchants. */
import { type GiftRedeemed, giftStream } from '../../domain/gift/events.js';
import { notificationStream } from '../../domain/notification.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { NamedGifts } from './giftHistory.js';
import { type ProveDeps, proveEvents, type Proven } from '../evidence/index.js';
import { shownToAuditors, shownToMerchants } from './shownInProofs.js';

const READS_AT_ONCE = 16;

/** Proves the events of the gifts, their purchase and their notifications, for auditors. @throws as `proveEvents` */
export async function proveGifts(
  deps: ProveDeps,
  { transactionId, giftIds }: Pick<NamedGifts, 'transactionId' | 'giftIds'>,
): Promise<Proven | undefined> {
  const ofGifts = giftIds.flatMap((id) => [giftStream(id), notificationStream(id)]);
  const all: RecordedEvent[] = [];
  await inParallel([transactionStream(transactionId), ...ofGifts], READS_AT_ONCE, async (stream) => {
    all.push(...(await deps.stored.read(stream)));
  });
  const named = new Set(giftIds);
  return proveEvents(deps, all, (event, rules) => shownToAuditors(event, rules, named));
}

/** Proves the issue of the gift, the redemption and its reversal, for the merchant. @throws as `proveEvents` */
export async function proveRedemption(
  deps: ProveDeps,
  giftId: string,
  redemptionId: string,
): Promise<Proven | undefined> {
  const life = await deps.stored.read(giftStream(giftId));
  const concerns = ({ type, data }: RecordedEvent): boolean =>
    type === 'GiftIssued' || (data as { readonly redemption_id?: string }).redemption_id === redemptionId;
  return proveEvents(deps, life.filter(concerns), shownToMerchants);
}

export interface NamedRedemption {
  readonly id: string;
  /** Merchant at whose location the gift was redeemed. */
  readonly merchantId: string;
}

/**
 * Finds a redemption of a gift.
 * @param redemptionId may be `latest`
 * @returns `undefined` where the gift has no such redemption
 */
export async function redemptionNamed(
  stored: Pick<EventStore, 'read'>,
  giftId: string,
  redemptionId: string,
): Promise<NamedRedemption | undefined> {
  const redeemed = (await stored.read(giftStream(giftId))).flatMap(({ type, data }) =>
    type === 'GiftRedeemed' ? [data as GiftRedeemed['data']] : [],
  );
  const found =
    redemptionId === 'latest' ? redeemed.at(-1) : redeemed.find((one) => one.redemption_id === redemptionId);
  return found === undefined ? undefined : { id: found.redemption_id, merchantId: found.location_merchant_id };
}
