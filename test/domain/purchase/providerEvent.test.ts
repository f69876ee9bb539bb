import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { ReversalEvent } from '../../../src/domain/purchase/disputes.js';
import { reversalSteps, settleDispute, settleProviderRefund } from '../../../src/domain/purchase/disputes.js';
import { decideProviderEvent, type ProviderEvent, unsureCharge } from '../../../src/domain/purchase/providerEvent.js';
import type { PurchaseEvent } from '../../../src/domain/purchase/events.js';
import {
  reversalsOf,
  type MadePurchase,
  type Purchase,
  purchaseAggregate,
} from '../../../src/domain/purchase/state.js';
import { failAuthentication, leftOfCharge, requireAuthentication } from '../../../src/domain/purchase/decisions.js';
import { given, GIVEN_AT } from '../../support/assertions/givenWhenThen.js';
import { giftsPurchased } from '../../support/fixtures/giftEvents.js';

const test = suite('news of a payment');

const bought = giftsPurchased({
  transaction_id: 't',
  seed: '01'.repeat(32),
  total: 1050,
  expires_on: '2027-03-01',
  receivers: [{}, {}, {}],
});
const required: PurchaseEvent = {
  type: 'PaymentAuthenticationRequired',
  data: { provider: 'stripe', payment_id: 'pi_1', action: 'use_stripe_sdk', until: '2026-03-01T09:15:00.000Z' },
};
const charged: PurchaseEvent = {
  type: 'PaymentCharged',
  data: { amount: 1050, provider: 'stripe', charge_id: 'pi_1' },
};
const declined: PurchaseEvent = { type: 'PaymentDeclined', data: { provider: 'stripe', code: 'lost_card' } };
const provider = 'stripe';
const succeeded = (charge_id = 'pi_1', amount = 1050): ProviderEvent => ({
  provider,
  kind: 'succeeded',
  charge_id,
  amount,
});
const failed = (charge_id = 'pi_1'): ProviderEvent => ({ provider, kind: 'failed', charge_id, code: 'nope' });
const refunded = (total: number, charge_id = 'pi_1'): ProviderEvent => ({
  provider,
  kind: 'refunded',
  charge_id,
  total,
});
const opened: ProviderEvent = {
  provider,
  kind: 'dispute opened',
  charge_id: 'pi_1',
  dispute_id: 'dp',
  amount: 1050,
  reason: 'fraudulent',
};
const closed = (outcome: 'won' | 'lost'): ProviderEvent => ({
  provider,
  kind: 'dispute closed',
  charge_id: 'pi_1',
  dispute_id: 'dp',
  amount: 1050,
  reason: 'fraudulent',
  outcome,
});

const made = (state: Purchase): MadePurchase => {
  assert.notEqual(state.status, 'none');
  return state as MadePurchase;
};
const after = (...events: PurchaseEvent[]) => ({
  hears: (providerEvent: ProviderEvent) =>
    given(purchaseAggregate, bought, ...events).when((state) => decideProviderEvent(made(state), providerEvent)),
  state: made(given(purchaseAggregate, bought, ...events).state),
});
/** What is left to do after this news, one after another. */
function open(events: readonly PurchaseEvent[], ...providerEvent: readonly ProviderEvent[]): string[] {
  const all = [...events];
  for (const one of providerEvent) all.push(...decideProviderEvent(after(...all).state, one));
  return reversalSteps(reversalsOf(after(...all).state)).map(({ key }) => key);
}

test('records once that a success pays for an open purchase', () => {
  after().hears(succeeded()).then(charged);
  after(required).hears(succeeded()).then(charged);
  after(required, charged).hears(succeeded()).then();
  after(required).hears(succeeded('pi_1', 1049)).then();
});

test('refunds a charge that bought nothing, once', () => {
  const back = (cause: string, charge_id: string): PurchaseEvent => ({
    type: 'RefundStarted',
    data: {
      refund_id: `late-${charge_id}`,
      attempt: 1,
      gift_ids: [],
      kept: {},
      provider,
      charge_id,
      amount: 1050,
      payment_reference: 'pm',
      cause,
    },
  });
  const late = back('charged after the purchase was declined', 'pi_1');
  after(declined).hears(succeeded()).then(late);
  after(declined, late).hears(succeeded()).then();
  const second = back('charged a second time', 'pi_2');
  after(charged).hears(succeeded('pi_2')).then(second);
  after(charged, second).hears(succeeded('pi_2')).then();
  assert.equal(leftOfCharge(after(charged, second).state), 1050, 'the first charge is whole');
});

test('records a failure only where the buyer is waited for', () => {
  const noted: PurchaseEvent = {
    type: 'PaymentAuthenticationFailed',
    data: { provider, payment_id: 'pi_1', code: 'nope' },
  };
  after().hears(failed()).then();
  after(required).hears(failed()).then(noted);
  after(required).hears(failed('pi_2')).then();
  after(required, noted).hears(failed()).then();
  after(required, charged).hears(failed()).then();
  after(required, declined).hears(failed()).then();
});

test('requires authentication once, while the charge is open', () => {
  const requested = required.data as Parameters<typeof requireAuthentication>[1];
  given(purchaseAggregate, bought)
    .when((state) => requireAuthentication(state, requested))
    .then(required);
  for (const event of [required, charged, declined])
    given(purchaseAggregate, bought, event)
      .when((state) => requireAuthentication(state, requested))
      .then();
  given(purchaseAggregate)
    .when((state) => failAuthentication(state, { provider, payment_id: 'pi_1', code: 'x' }))
    .then();
  const failure: PurchaseEvent = {
    type: 'PaymentAuthenticationFailed',
    data: { provider, payment_id: 'pi_1', code: 'nope' },
  };
  assert.deepEqual(after(failure).state.authentication, undefined);
  assert.equal(after(required, failure).state.authentication?.failed, 'nope');
  assert.equal(after(required).state.authentication?.required, GIVEN_AT);
});

test('records only new external refunds, without ours', () => {
  const noted = (amount: number, total: number): PurchaseEvent => ({
    type: 'RefundedAtProvider',
    data: { provider, charge_id: 'pi_1', amount, total },
  });
  const ours: PurchaseEvent = {
    type: 'RefundStarted',
    data: {
      refund_id: 'r',
      attempt: 1,
      gift_ids: ['g'],
      kept: {},
      amount: 350,
      provider,
      charge_id: 'pi_1',
      payment_reference: 'pm',
    },
  };
  after(charged).hears(refunded(350)).then(noted(350, 350));
  after(charged, noted(350, 350)).hears(refunded(350)).then();
  after(charged, noted(350, 350)).hears(refunded(100)).then();
  after(charged, noted(350, 350)).hears(refunded(1050)).then(noted(700, 1050));
  after(charged, ours).hears(refunded(350)).then();
  after(charged, ours).hears(refunded(700)).then(noted(350, 350));
  after().hears(refunded(350)).then(noted(350, 350));
  after(declined).hears(refunded(350)).then();
  after(charged).hears(refunded(350, 'pi_2')).then();
  after(charged, { ...ours, data: { ...ours.data, refund_id: 'late-pi_1' } } as PurchaseEvent)
    .hears(refunded(700))
    .then();
  assert.equal(leftOfCharge(after(charged, ours, noted(350, 350)).state), 350);
  assert.equal(leftOfCharge(after(declined).state), 0);
});

test('records once that the provider could not deliver an attempt of a refund', () => {
  const data = {
    refund_id: 'r',
    attempt: 1,
    gift_ids: ['g'],
    kept: {},
    amount: 350,
    provider,
    charge_id: 'pi_1',
    payment_reference: 'pm',
  };
  const started: PurchaseEvent = { type: 'RefundStarted', data };
  const given1: PurchaseEvent = {
    type: 'GiftsRefunded',
    data: { refund_id: 'r', attempt: 1, gift_ids: ['g'], amount: 350, provider, refund_ref: 're_1' },
  };
  const providerEvent: ProviderEvent = {
    provider,
    kind: 'refund failed',
    refund_id: 'r',
    attempt: 1,
    refund_ref: 're_1',
    code: 'lost_or_stolen_card',
  };
  const failure: PurchaseEvent = {
    type: 'RefundFailed',
    data: {
      refund_id: 'r',
      attempt: 1,
      gift_ids: ['g'],
      amount: 350,
      provider,
      refund_ref: 're_1',
      code: 'lost_or_stolen_card',
    },
  };
  after(charged, started, given1).hears(providerEvent).then(failure);
  after(charged, started, given1, failure).hears(providerEvent).then();
  after(charged, started)
    .hears(providerEvent)
    .then({
      type: 'RefundRefused',
      data: { refund_id: 'r', attempt: 1, amount: 350, provider, code: 'lost_or_stolen_card' },
    });
  after(charged, started, given1, failure, { type: 'RefundStarted', data: { ...data, attempt: 2 } })
    .hears(providerEvent)
    .then();
  after(charged).hears(providerEvent).then();
  assert.equal(leftOfCharge(after(charged, started, given1, failure).state), 1050);
});

test('ignores a dispute about a charge that did not pay, unless it was recorded before', () => {
  const other = { charge_id: 'pi_2' };
  after(charged)
    .hears({ ...opened, ...other } as ProviderEvent)
    .then();
  after(charged)
    .hears({ ...closed('lost'), ...other } as ProviderEvent)
    .then();
  after({ type: 'DisputeOpened', data: { provider, dispute_id: 'dq', amount: 1050, reason: 'fraudulent' } }, charged)
    .hears({ ...closed('lost'), ...other } as ProviderEvent)
    .then();
  const noted = after().hears({ ...opened, ...other } as ProviderEvent);
  noted.then({ type: 'DisputeOpened', data: { provider, dispute_id: 'dp', amount: 1050, reason: 'fraudulent' } });
  after({ type: 'DisputeOpened', data: { provider, dispute_id: 'dp', amount: 1050, reason: 'fraudulent' } }, charged)
    .hears({ ...closed('won'), ...other } as ProviderEvent)
    .then({ type: 'DisputeClosed', data: { provider, dispute_id: 'dp', outcome: 'won' } });
});

test('counts a refused refund as external until it is tried again', () => {
  const noted: PurchaseEvent = {
    type: 'RefundedAtProvider',
    data: { provider, charge_id: 'pi_1', amount: 350, total: 350 },
  };
  const data = {
    refund_id: 'r',
    attempt: 1,
    gift_ids: ['g'],
    kept: {},
    amount: 350,
    provider,
    charge_id: 'pi_1',
    payment_reference: 'pm',
  };
  const ours: PurchaseEvent = { type: 'RefundStarted', data };
  const refused: PurchaseEvent = {
    type: 'RefundRefused',
    data: { refund_id: 'r', attempt: 1, amount: 350, provider, code: 'lost_card' },
  };
  const again: PurchaseEvent = { type: 'RefundStarted', data: { ...data, attempt: 2 } };
  const outside = (...events: PurchaseEvent[]): unknown =>
    (after(charged, ...events).state.refunds.get('r') as { outside?: true }).outside;
  after(charged, ours, refused).hears(refunded(350)).then(noted);
  after(charged, ours, refused, noted).hears(refunded(350)).then();
  after(charged, ours, refused, again).hears(refunded(350)).then();
  assert.equal(leftOfCharge(after(charged, ours, refused, noted).state), 700, 'the money counts once');
  assert.deepEqual([outside(ours, noted), outside(ours, refused, noted)], [true, true]);
  assert.deepEqual(
    [outside(noted, ours), outside(ours, noted, refused), outside(ours, refused, noted, again)],
    [undefined, undefined, undefined],
    'what came before its last event is not it',
  );
  assert.equal(outside({ type: 'RefundStarted', data: { ...data, charge_id: 'pi_2' } }, noted), undefined);
});

test('asks the provider about a total that may hold refused or external refunds', () => {
  const data = {
    refund_id: 'r',
    attempt: 1,
    gift_ids: ['g'],
    kept: {},
    amount: 350,
    provider,
    charge_id: 'pi_1',
    payment_reference: 'pm',
  };
  const ours: PurchaseEvent = { type: 'RefundStarted', data };
  const delivered: PurchaseEvent = {
    type: 'GiftsRefunded',
    data: { refund_id: 'r', attempt: 1, gift_ids: ['g'], amount: 350, provider, refund_ref: 're_1' },
  };
  const undelivered: PurchaseEvent = {
    type: 'RefundFailed',
    data: { refund_id: 'r', attempt: 1, gift_ids: ['g'], amount: 350, provider, refund_ref: 're_1', code: 'lost_card' },
  };
  const again: PurchaseEvent = { type: 'RefundStarted', data: { ...data, attempt: 2 } };
  const noted: PurchaseEvent = {
    type: 'RefundedAtProvider',
    data: { provider, charge_id: 'pi_1', amount: 350, total: 350 },
  };
  const asks = (providerEvent: ProviderEvent, ...events: PurchaseEvent[]): unknown =>
    unsureCharge(after(charged, ...events).state, providerEvent);
  assert.deepEqual(
    [asks(refunded(350)), asks(refunded(350), ours), asks(refunded(700), ours), asks(refunded(700), ours, delivered)],
    [undefined, undefined, undefined, undefined],
    'nothing of ours is in doubt',
  );
  assert.deepEqual(
    [asks(refunded(350), ours, delivered, undelivered), asks(refunded(700), ours, delivered, undelivered, again)],
    ['pi_1', 'pi_1'],
  );
  assert.deepEqual(
    [
      asks(refunded(350), ours, delivered, undelivered, noted),
      asks(refunded(350), ours, delivered, undelivered, again),
    ],
    [undefined, undefined],
    'it is known',
  );
  assert.deepEqual(
    [
      asks(refunded(350, 'pi_2'), ours, undelivered),
      unsureCharge(after(declined).state, refunded(350)),
      asks(failed(), ours),
    ],
    [undefined, undefined, undefined],
  );
  after(charged, ours, delivered, undelivered)
    .hears({ provider, kind: 'refunded', charge_id: 'pi_1', total: 350, others: 0 })
    .then();

  const providerEvent: ProviderEvent = {
    provider,
    kind: 'refund failed',
    refund_id: 'r',
    attempt: 1,
    refund_ref: 're_1',
    code: 'lost_card',
  };
  assert.deepEqual(
    [asks(providerEvent, ours, delivered), asks(providerEvent, ours, delivered, undelivered), asks(providerEvent)],
    ['pi_1', undefined, undefined],
  );
  after(charged, ours, delivered)
    .hears({ ...providerEvent, others: 0 })
    .then(undelivered);
  after(charged, ours, delivered)
    .hears({ ...providerEvent, others: 350 })
    .then(undelivered, noted);
  after(charged, ours, delivered, noted)
    .hears({ ...providerEvent, others: 350 })
    .then(undelivered);
  after(charged)
    .hears({ ...providerEvent, others: 350 })
    .then();
  after(charged, ours, delivered, undelivered)
    .hears({ provider, kind: 'refunded', charge_id: 'pi_1', total: 700, others: 350 })
    .then(noted);

  const requested: PurchaseEvent = {
    type: 'RefundRequested',
    data: { refund_id: 'q', gift_ids: ['h'], voided: false, reason: 'x' },
  };
  assert.equal(asks(refunded(350), requested), undefined, 'the provider was not asked for it yet');
});

test('a charge that bought nothing leaves the refunds of the one that paid beyond doubt', () => {
  const data = { refund_id: 'late-pi_2', attempt: 1, amount: 1050, provider };
  const late: PurchaseEvent = {
    type: 'RefundStarted',
    data: { ...data, gift_ids: [], kept: {}, charge_id: 'pi_2', payment_reference: 'pm', cause: 'x' },
  };
  const refused: PurchaseEvent = { type: 'RefundRefused', data: { ...data, code: 'lost_card' } };
  const { state } = after(charged, late, refused);
  assert.equal(unsureCharge(state, refunded(350)), undefined);
  assert.equal(unsureCharge(state, refunded(1050, 'pi_2')), undefined);
  assert.equal(unsureCharge(after(declined, late, refused).state, refunded(1050, 'pi_2')), undefined);
  const undelivered: ProviderEvent = {
    provider,
    kind: 'refund failed',
    refund_id: 'late-pi_2',
    attempt: 1,
    refund_ref: 're_2',
    code: 'lost_card',
  };
  for (const end of [charged, declined]) {
    assert.equal(unsureCharge(after(end, late).state, undelivered), undefined);
    after(end, late)
      .hears({ ...undelivered, others: 1050 })
      .then(refused);
  }
});

test('opens and closes a dispute once, in whatever order it is reported', () => {
  const begun: ReversalEvent = {
    type: 'DisputeOpened',
    data: { provider, dispute_id: 'dp', amount: 1050, reason: 'fraudulent' },
  };
  const ended = (outcome: 'won' | 'lost'): ReversalEvent => ({
    type: 'DisputeClosed',
    data: { provider, dispute_id: 'dp', outcome },
  });
  after(charged).hears(opened).then(begun);
  after(charged, begun).hears(opened).then();
  after(charged, begun).hears(closed('won')).then(ended('won'));
  // Its beginning was not told yet, or never is: what was disputed stands in the log all the same, and once.
  after(charged).hears(closed('lost')).then(begun, ended('lost'));
  after(charged, begun, ended('lost')).hears(opened).then();
  after(charged, ended('won')).hears(opened).then();
  after(charged, begun, ended('won')).hears(closed('lost')).then();
});

test('lists the steps that are left', () => {
  const blocked: ReversalEvent = { type: 'DisputeSettled', data: { dispute_id: 'dp', blocked: true, gifts: 3 } };
  assert.deepEqual(open([charged], opened), ['dispute:dp']);
  assert.deepEqual(open([charged], opened, refunded(350)), ['dispute:dp', 'provider-refund']);
  assert.deepEqual(open([charged], closed('lost')), ['dispute:dp'], 'its gifts have not been blocked');
  const state = after(charged, ...decideProviderEvent(after(charged).state, opened), blocked).state;
  assert.deepEqual(reversalSteps(reversalsOf(state)), []);
  const money = (providerEvent: ProviderEvent) =>
    reversalsOf(
      after(
        charged,
        ...decideProviderEvent(after(charged).state, opened),
        blocked,
        ...decideProviderEvent(state, providerEvent),
      ).state,
    );
  assert.deepEqual(reversalSteps(money(closed('lost'))), [], 'they stay blocked');
  assert.deepEqual(
    reversalSteps(money(closed('won'))).map(({ key }) => key),
    ['dispute:dp'],
  );
});

test('records once what was done', () => {
  const money = reversalsOf(
    after(
      charged,
      ...decideProviderEvent(after(charged).state, refunded(350)),
      ...decideProviderEvent(after(charged).state, opened),
    ).state,
  );
  const refund = { total: 350, cancelled: 1, vouchered: 0, difference: 0 };
  const settled = settleProviderRefund(money, refund);
  assert.deepEqual(settled, [{ type: 'ProviderRefundSettled', data: refund }]);
  const done = purchaseAggregate.evolve({ ...after(charged).state, reversals: money }, {
    ...settled[0],
    at: '',
  } as PurchaseEvent & { at: string }) as MadePurchase;
  assert.deepEqual(settleProviderRefund(reversalsOf(done), refund), []);
  assert.deepEqual(settleDispute(money, { dispute_id: 'dp', blocked: true, gifts: 3 }), [
    { type: 'DisputeSettled', data: { dispute_id: 'dp', blocked: true, gifts: 3 } },
  ]);
  assert.deepEqual(settleDispute(money, { dispute_id: 'other', blocked: true, gifts: 3 }), []);
});

test.run();
