import { NO_TEXT } from '../../../src/lib/seal.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type PurchaseTrigger,
  type PurchaseWork,
  reactToPurchase,
  resumePurchase,
} from '../../../src/processors/purchase/state.js';
import type { GiftsPurchased, PurchaseReceiver } from '../../../src/domain/purchase/events.js';

const test = suite('purchase process');

const bought = (receivers: readonly PurchaseReceiver[]): GiftsPurchased => ({
  type: 'GiftsPurchased',
  data: {
    transaction_id: 't1',
    seed: '00'.repeat(32),
    buyer_id: 'ann',
    product_id: 'coffee',
    brand_id: 'beans',
    product_name: 'Flat white',
    sale_price: 250,
    total: 250 * receivers.length,
    payment_reference: 'card',
    expires_on: '2030-01-01',
    message: NO_TEXT,
    receivers,
  },
});
const started: PurchaseTrigger = {
  type: 'ChargeStarted',
  data: { amount: 250, payment_reference: 'card', kind: 'card', prepaid: false },
};
const charged: PurchaseTrigger = { type: 'PaymentCharged', data: { amount: 250, provider: 'p', charge_id: 'c' } };
const declined: PurchaseTrigger = { type: 'PaymentDeclined', data: { provider: 'p', code: 'lost_card' } };
const parked = (entity: string): PurchaseTrigger => ({
  type: 'WorkParked',
  data: { entity, transaction_id: 't1', step: 'x', cause: 'y', event_id: 'e', times: 1 },
});
const issued: PurchaseTrigger = {
  type: 'GiftIssued',
  data: {
    transaction_id: 't1',
    index: 0,
    message_id: 'm',
    product_id: 'coffee',
    brand_id: 'beans',
    value: 250,
    sender_id: 'ann',
    receiver: {},
    purchased_at: '',
    expires_on: '2030-01-01',
  },
};

/** Given these events: what is open, and what the last of them asks for. */
function given(...events: readonly PurchaseTrigger[]): {
  work: PurchaseWork | undefined;
  requested: readonly string[];
} {
  let work: PurchaseWork | undefined;
  let requested: readonly string[] = [];
  for (const [revision, event] of events.entries()) {
    const reaction = reactToPurchase(work, event, 't1', {
      id: `e${revision}`,
      at: '2026-01-01T00:00:00.000Z',
      revision,
      correlationId: 'r',
    });
    work = reaction.state;
    requested = reaction.intents.map((intent) => `${intent.do} ${intent.instance}`);
  }
  return { work, requested };
}
const resumed = (work: PurchaseWork | undefined): readonly string[] =>
  work === undefined ? [] : resumePurchase(work, 't1').map((intent) => intent.do);

const phone = { phone_id: 'h' };

test('bought: charge it', () => {
  const { work, requested } = given(bought([{}]));
  assert.equal(requested, ['charge t1']);
  assert.equal(resumed(work), ['charge']);
  assert.is(work?.stage, 'bought');
});

test('asks again where it takes a started charge over', () => {
  const { work, requested } = given(bought([{}]), started);
  assert.equal(requested, []);
  assert.equal(resumed(work), ['charge']);
  assert.equal([work?.stage, work?.last.revision], ['charging', 1]);
});

test('waits for its buyer, and goes on at once when they failed', () => {
  const required: PurchaseTrigger = {
    type: 'PaymentAuthenticationRequired',
    data: { provider: 'p', payment_id: 'c', action: 'redirect', until: '2026-01-01T00:15:00.000Z' },
  };
  const waiting = given(bought([{}]), started, required);
  assert.equal(
    [waiting.requested, waiting.work?.stage, waiting.work?.last.revision, resumed(waiting.work)],
    [[], 'authenticating', 2, ['charge']],
  );
  const over = given(bought([{}]), started, required, {
    type: 'PaymentAuthenticationFailed',
    data: { provider: 'p', payment_id: 'c', code: 'x' },
  });
  assert.equal([over.requested, over.work?.stage, over.work?.last.revision], [['charge t1'], 'authenticating', 3]);
});

test('charged: issue the gifts', () => {
  const { work, requested } = given(bought([{}]), started, charged);
  assert.equal(requested, ['issue t1']);
  assert.equal(resumed(work), ['issue']);
});

test('declined: done', () => assert.is(given(bought([{}, {}]), started, declined).work, undefined));

test('closes once all gifts are issued, with a receiver or to be shared by URL', () => {
  for (const receivers of [
    [{}, {}],
    [phone, { user_id: 'bea' }],
  ]) {
    const { work, requested } = given(bought(receivers), started, charged, issued);
    assert.is(work?.toIssue, 1);
    assert.equal([requested, resumed(work)], [[], ['issue']]);
    assert.is(given(bought(receivers), started, charged, issued, issued).work, undefined);
  }
});

test('parked itself: done, whatever was left', () => {
  assert.is(given(bought([phone]), started, parked('t1')).work, undefined);
  assert.is(given(bought([phone]), started, charged, parked('t1')).work, undefined);
});

test('ignores events of what is not open', () => {
  for (const event of [started, charged, declined, issued, parked('t1')])
    assert.equal(given(event), { work: undefined, requested: [] });
});

test.run();
