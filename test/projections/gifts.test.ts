import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { giftsProjection, type GiftDocument } from '../../src/projections/gifts.js';
import { timeKey } from '../../src/projections/timeKey.js';
import { transactionsProjection, type TransactionDocument } from '../../src/projections/transactions.js';
import type { Projection } from '../../src/runtime/readmodels/projection.js';
import { sameHiddenClass } from '../support/assertions/hiddenClass.js';
import { newEvent, purchase } from '../support/fixtures/projecting.js';

const BOUGHT_AT = '2026-03-01T10:00:00.000Z';
const LATER = '2026-03-02T10:00:00.000Z';
const LAST = '2026-03-03T10:00:00.000Z';
const BOUGHT = purchase([{ user_id: 'u2' }, { phone_id: 'h1' }, {}], 't1');
const IDS = deriveGiftIds(BOUGHT.seed, 3);
const [FIRST] = IDS;
const id = FIRST?.gift_id ?? '';

let position = 0;
const recorded = (stream: string, type: string, data: object, at: string): RecordedEvent => ({
  ...newEvent(type, data, at),
  stream,
  revision: 0,
  position: String(++position).padStart(16, '0'),
});
const bought = recorded('transaction-t1', 'GiftsPurchased', BOUGHT, BOUGHT_AT);
const ofGift = (type: string, data: object, at = LATER): RecordedEvent => recorded(`gift-${id}`, type, data, at);
const redemption = {
  redemption_id: 'r1',
  location_id: 's1',
  location_merchant_id: 'm1',
  merchant_id: 'm1',
  brand_id: 'b1',
  product_id: 'p1',
  value: 350,
};

/** Folds the events that touch one document. */
function fold<B extends object>(
  projection: Projection<B>,
  document: string,
  events: readonly RecordedEvent[],
): B | undefined {
  let body: B | undefined;
  for (const event of events) {
    const index = projection.documentIds(event).indexOf(document);
    if (projection.types.includes(event.type) && index >= 0) body = projection.evolve(body, event, document, index);
  }
  return body;
}
const gift = (...events: RecordedEvent[]): GiftDocument | undefined => fold(giftsProjection, id, events);
const transaction = (...events: RecordedEvent[]): TransactionDocument | undefined =>
  fold(transactionsProjection, 't1', events);
const fresh = {
  transaction_id: 't1',
  index: 0,
  message_id: FIRST?.message_id,
  receiver: { user_id: 'u2' },
  held: `uu2/${timeKey(BOUGHT_AT)}`,
  updated_at: BOUGHT_AT,
};

const test = suite('projections of gifts and transactions');

test('a purchase makes one document a receiver, under the ids that its seed gives', () => {
  assert.equal(
    giftsProjection.documentIds(bought),
    IDS.map((ids) => ids.gift_id),
  );
  assert.equal(gift(bought), fresh);
  assert.equal(
    IDS.map((ids, index) => giftsProjection.evolve(undefined, bought, ids.gift_id, index).receiver),
    [{ user_id: 'u2' }, { phone_id: 'h1' }, {}],
  );
});

test('no phone number and no seed reaches a gift', () => {
  const all = JSON.stringify(IDS.map((ids, index) => giftsProjection.evolve(undefined, bought, ids.gift_id, index)));
  assert.not.match(all, '7700900123');
  assert.not.match(all, BOUGHT.seed);
});

test('issuing a gift is not folded, since it changes nothing', () => {
  assert.not(giftsProjection.types.includes('GiftIssued'));
});

test('a claim shows who claimed the gift', () => {
  assert.equal(gift(bought, ofGift('GiftClaimed', { user_id: 'u9' })), {
    ...fresh,
    claimed_by: 'u9',
    held: `uu9/${timeKey(LATER)}`,
    updated_at: LATER,
  });
});

test('a gift shows its latest redemption', () => {
  const made = { id: 'r1', location_id: 's1', created_at: LATER };
  const redeemed = ofGift('GiftRedeemed', redemption);
  assert.equal(gift(bought, redeemed), {
    ...fresh,
    redemption: { ...made, redeemed: true, updated_at: LATER },
    updated_at: LATER,
  });
  const undone = ofGift('GiftUnredeemed', { redemption_id: 'r1' }, LAST);
  assert.equal(gift(bought, redeemed, undone), {
    ...fresh,
    redemption: { ...made, redeemed: false, updated_at: LAST },
    updated_at: LAST,
  });
  const again = ofGift('GiftRedeemed', { ...redemption, redemption_id: 'r2' }, LAST);
  assert.is(gift(bought, redeemed, undone, again)?.redemption?.id, 'r2');
  assert.is(gift(bought, redeemed, undone, again)?.redemption?.redeemed, true);
});

test('a gift shows its voucher', () => {
  const data = { voucher_id: 'v1', code: 'C', pin: null, segment_id: 'g1', expires_at: LAST };
  const voucher = { id: 'v1', code: 'C', pin: null, segment_id: 'g1', expires_at: LAST, created_at: LATER };
  const assigned = ofGift('VoucherAssigned', data);
  assert.equal(gift(bought, assigned), { ...fresh, voucher, updated_at: LATER });
  const later = '2027-06-01T00:00:00.000Z';
  const extended = { ...fresh, expires_on: '2027-05-31', updated_at: LAST };
  assert.equal(
    gift(
      bought,
      assigned,
      ofGift('GiftExtended', { expires_on: '2027-05-31', voucher_expires_at: later, reason: '' }, LAST),
    ),
    { ...extended, voucher: { ...voucher, expires_at: later, updated_at: LAST } },
  );
  assert.equal(
    gift(
      bought,
      assigned,
      ofGift('GiftExtended', { expires_on: '2027-05-31', voucher_expires_at: null, reason: '' }, LAST),
    ),
    { ...extended, voucher },
    'not the voucher',
  );
  assert.equal(
    gift(bought, ofGift('GiftExtended', { expires_on: '2027-05-31', voucher_expires_at: null, reason: '' }, LAST)),
    extended,
  );
});

test('a cancelled gift says so', () => {
  assert.equal(gift(bought, ofGift('GiftCancelled', { reason: 'declined' })), {
    ...fresh,
    cancelled: true,
    updated_at: LATER,
  });
});

test('an event that can not be folded says why', () => {
  assert.throws(() => gift(ofGift('GiftRedeemed', redemption)), /never bought/);
  assert.throws(() => gift(bought, ofGift('GiftUnredeemed', { redemption_id: 'r1' })), /not the latest/);
  assert.throws(() => giftsProjection.evolve(undefined, bought, id, 3), /no gift 3/);
  assert.throws(() => giftsProjection.evolve(fresh as GiftDocument, ofGift('GiftPainted', {}), id, 0), /GiftPainted/);
  assert.throws(() => transaction(recorded('transaction-t1', 'PaymentCharged', {}, LATER)), /never made/);
});

test('a transaction is pending until its first answer, which stands', () => {
  const pending = {
    buyer_id: 'u1',
    seed: BOUGHT.seed,
    count: 3,
    product_id: 'p1',
    brand_id: 'b1',
    sale_price: 350,
    total: 1050,
    message: BOUGHT.message,
    expires_on: '2027-03-01',
    payment: 'pending',
    created_at: BOUGHT_AT,
    updated_at: BOUGHT_AT,
  };
  const charged = recorded('transaction-t1', 'PaymentCharged', { amount: 1050, provider: 'p', charge_id: 'c' }, LATER);
  const declined = recorded('transaction-t1', 'PaymentDeclined', { provider: 'p', code: 'no' }, LAST);
  assert.equal(transaction(bought), pending);
  assert.equal(transaction(bought, charged), { ...pending, payment: 'charged', settled_at: LATER, updated_at: LATER });
  const settled = { settled_at: LAST, decline_code: 'no', updated_at: LAST };
  assert.equal(transaction(bought, declined), { ...pending, payment: 'declined', ...settled });
  assert.equal(transaction(bought, charged, declined), transaction(bought, charged));
});

test('documents with the same history have the same shape for the JavaScript engine', () => {
  // The JavaScript engine tells copies apart only once it has compiled what makes them.
  const alike = (what: string, fresh: () => object | undefined): void => {
    const many = Array.from({ length: 2_000 }, fresh);
    assert.ok(sameHiddenClass(many.at(-2) as object, many.at(-1) as object), what);
  };
  alike('charged', () =>
    transaction(bought, recorded('transaction-t1', 'PaymentCharged', { charge_id: 'c1', amount: 1_050 }, LATER)),
  );
  for (const [type, data] of [
    ['GiftClaimed', { user_id: 'u9' }],
    ['GiftRedeemed', redemption],
    ['GiftCancelled', { reason: 'refunded' }],
  ] as const) {
    alike(type, () => gift(bought, ofGift(type, data)));
  }
});

test.run();
