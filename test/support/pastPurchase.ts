/** Purchases of other days, appended as they would stand in the log: tests can't wait until gifts expire. */
import { randomBytes, randomUUID } from 'node:crypto';
import { type GiftEvent, giftStream } from '../../src/domain/gift.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { type PurchaseEvent, type PurchaseReceiver, transactionStream } from '../../src/domain/purchase.js';
import type { NewEvent } from '../../src/ports/eventStore.js';
import { type Service } from './service.js';
import { eventually } from './until.js';

const DAY_MS = 86_400_000;

/** A time so many days from now (negative: past), ISO 8601. */
export const daysFromNow = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

const recorded = (event: PurchaseEvent | GiftEvent, at: string): NewEvent => ({
  ...event,
  id: randomUUID(),
  at,
  metadata: { commandId: randomUUID(), correlationId: 'past', by: { user: 'ann' } },
});

/** How it was bought. */
export interface PastPurchase {
  /** Default `mocha`, of brand `bean`. */
  readonly product?: string;
  readonly brand?: string;
  readonly receiver?: PurchaseReceiver;
  /** When, in days from now; default -10. */
  readonly days?: number;
  /** The last valid day, in days from now; default -9. */
  readonly expires?: number;
}

/** A gift that ann bought and paid for on another day; its id, once it is issued and shown. */
export async function boughtBefore(
  service: Service,
  { product = 'mocha', brand = 'bean', receiver = {}, days = -10, expires = -9 }: PastPurchase = {},
): Promise<string> {
  const transactionId = randomUUID().replaceAll('-', '');
  const seed = randomBytes(32).toString('hex');
  const at = daysFromNow(days);
  const purchased: PurchaseEvent = {
    type: 'GiftsPurchased',
    data: {
      transaction_id: transactionId,
      seed,
      buyer_id: 'ann',
      product_id: product,
      brand_id: brand,
      product_name: product,
      sale_price: 400,
      total: 400,
      payment_reference: 'pm_card_visa',
      expires_on: daysFromNow(expires).slice(0, 10),
      message: 'from another day',
      receivers: [receiver],
    },
  };
  const started: PurchaseEvent = { type: 'ChargeStarted', data: { amount: 400, payment_reference: 'pm_card_visa' } };
  const charged: PurchaseEvent = {
    type: 'PaymentCharged',
    data: { amount: 400, provider: 'simulated', charge_id: 'past' },
  };
  await service.events.append(
    transactionStream(transactionId),
    [purchased, started, charged].map((event) => recorded(event, at)),
    'none',
  );
  const [ids] = deriveGiftIds(seed, 1);
  if (ids === undefined) throw new Error('a purchase without a gift');
  await eventually(async () => (await service.events.read(giftStream(ids.gift_id))).length > 0, 10_000);
  // Nobody waits for read models on behalf of what was appended past the API.
  const token = await service.userToken('ann');
  await eventually(
    async () => (await service.ask('GET', `/api/v2/gifts/${ids.gift_id}`, { token })).status === 200,
    10_000,
  );
  return ids.gift_id;
}

/** Appends to a gift's stream what happened to it on another day; the `Gift-Position` to read it at. */
export async function happenedBefore(
  service: Service,
  gift: string,
  days: number,
  ...events: readonly GiftEvent[]
): Promise<string> {
  const { position } = await service.events.append(
    giftStream(gift),
    events.map((event) => recorded(event, daysFromNow(days))),
    'any',
  );
  return `${service.events.logId}:${position}`;
}

/** A redemption at Bean Soho. */
export const redeemedAtBean = (id: string): GiftEvent => ({
  type: 'GiftRedeemed',
  data: {
    redemption_id: id,
    location_id: 'bean-soho',
    location_merchant_id: 'coffee',
    merchant_id: 'coffee',
    brand_id: 'bean',
    product_id: 'mocha',
    value: 400,
  },
});
