import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isSettled } from '../../src/processors/managers.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import type { ParkedName } from '../../src/domain/parked.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('processors/parkedSettled');
const SEED = 'ab'.repeat(32);
const [one, two] = deriveGiftIds(SEED, 2).map(({ gift_id }) => gift_id) as [string, string];
const STEPS = { purchase: 'charge', notification: 'notify', refund: 'refund', dispute: 'dispute' } as const;
const settled = async (
  events: MemoryEvents,
  name: ParkedName,
  entity: string,
  step: string = STEPS[name],
): Promise<boolean> => isSettled(events, { name, work: { entity, transaction_id: 't', step } });
const given =
  (stream: string, events: MemoryEvents) =>
  (type: string, data: object = {}): void =>
    events.given(stream, { type, data });

function bought(): { events: MemoryEvents; transaction: ReturnType<typeof given>; issue: (gift: string) => void } {
  const events = memoryEvents();
  const transaction = given('transaction-t', events);
  transaction('GiftsPurchased', {
    transaction_id: 't',
    seed: SEED,
    buyer_id: 'ann',
    product_id: 'p',
    brand_id: 'b',
    sale_price: 100,
    total: 200,
    payment_reference: 'r',
    expires_on: '2030-01-01',
    message: '',
    receivers: [{}, {}],
  });
  transaction('ChargeStarted', { amount: 200, payment_reference: 'r', kind: 'card', prepaid: false });
  return {
    events,
    transaction,
    issue: (gift) =>
      given(`gift-${gift}`, events)('GiftIssued', { transaction_id: 't', index: 0, receiver: { user_id: 'bob' } }),
  };
}
const charge = { amount: 200, provider: 'p', charge_id: 'c' };

test('a purchase: once it is declined, or charged and all its gifts are issued', async () => {
  assert.is(await settled(memoryEvents(), 'purchase', 't'), false, 'nothing is known of it');
  const { events, transaction, issue } = bought();
  assert.is(await settled(events, 'purchase', 't'), false);
  transaction('PaymentCharged', charge);
  issue(one);
  assert.is(await settled(events, 'purchase', 't'), false);
  issue(two);
  assert.is(await settled(events, 'purchase', 't'), true);
  const other = bought();
  other.transaction('PaymentDeclined', { provider: 'p', code: 'no' });
  assert.is(await settled(other.events, 'purchase', 't'), true);
});

test('settles a notification once no receiver is left to notify', async () => {
  const { events, issue } = bought();
  assert.is(await settled(events, 'notification', one), false);
  issue(one);
  const notification = given(`notification-${one}`, events);
  const requested = { attempt: 1, asked_by: events.log.findLast(({ type }) => type === 'GiftIssued')?.id };
  notification('NotificationStarted', { transaction_id: 't', channel: 'sms', ...requested });
  assert.is(await settled(events, 'notification', one), false);
  notification('NotificationFailed', { cause: 'no', ...requested });
  assert.is(await settled(events, 'notification', one), true);
});

test('a refund: once the money is back, or none is to go back; one that is refused waits', async () => {
  assert.is(await settled(memoryEvents(), 'refund', 'r'), false, 'nothing is known of it');
  const { events, transaction } = bought();
  transaction('PaymentCharged', charge);
  assert.is(await settled(events, 'refund', 'r'), false);
  transaction('RefundRequested', { refund_id: 'r', gift_ids: [one], voided: false, reason: 'x' });
  assert.is(await settled(events, 'refund', 'r'), false);
  transaction('RefundStarted', {
    refund_id: 'r',
    attempt: 1,
    gift_ids: [one],
    kept: {},
    amount: 100,
    provider: 'p',
    charge_id: 'c',
    payment_reference: 'r',
  });
  transaction('RefundRefused', { refund_id: 'r', attempt: 1, code: 'no' });
  assert.is(await settled(events, 'refund', 'r'), false);
  transaction('RefundStarted', {
    refund_id: 'r',
    attempt: 2,
    gift_ids: [one],
    kept: {},
    amount: 100,
    provider: 'p',
    charge_id: 'c',
    payment_reference: 'r',
  });
  transaction('GiftsRefunded', { refund_id: 'r', attempt: 2, amount: 100, refund_ref: 're' });
  assert.is(await settled(events, 'refund', 'r'), true);
  transaction('RefundRequested', { refund_id: 'other', gift_ids: [two], voided: false, reason: 'x' });
  transaction('NothingRefunded', { refund_id: 'other', kept: { redeemed: [two] } });
  assert.is(await settled(events, 'refund', 'other'), true, 'there was nothing to give back');
});

test('settles a dispute or external refund once the gifts answer it', async () => {
  const { events, transaction } = bought();
  transaction('PaymentCharged', charge);
  transaction('DisputeOpened', { provider: 'p', dispute_id: 'dp', amount: 200, reason: 'fraudulent' });
  transaction('RefundedAtProvider', { provider: 'p', charge_id: 'c', amount: 100, total: 100 });
  assert.is(await settled(events, 'dispute', 'dp'), false);
  assert.is(await settled(events, 'refund', 't', 'provider refund'), false);
  transaction('DisputeSettled', { dispute_id: 'dp', blocked: true, gifts: 2 });
  assert.equal(
    [await settled(events, 'dispute', 'dp'), await settled(events, 'refund', 't', 'provider refund')],
    [true, false],
  );
  transaction('ProviderRefundSettled', { total: 100, cancelled: 1, vouchered: 0, difference: 0 });
  assert.is(await settled(events, 'dispute', 'dp'), true);
  assert.is(await settled(events, 'refund', 't', 'provider refund'), true);
});

test.run();
