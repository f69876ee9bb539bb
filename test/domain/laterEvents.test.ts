import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Aggregate, type DomainEvent, fold, HISTORY_ONLY } from '../../src/domain/decider.js';
import { erasureRequestAggregate } from '../../src/domain/erasure.js';
import { giftAggregate } from '../../src/domain/gift/state.js';
import { evolveReversals, NO_REVERSALS } from '../../src/domain/purchase/disputes.js';
import { evolveRefunds } from '../../src/domain/purchase/refund.js';
import { purchaseAggregate } from '../../src/domain/purchase/state.js';
import { evolveRefundedMoney } from '../../src/domain/purchase/status.js';
import { voucherCodeAggregate } from '../../src/domain/voucherCode.js';
import { walletAggregate } from '../../src/domain/wallet.js';
import { webhookEndpointAggregate } from '../../src/domain/webhookEndpoint.js';
import { GIVEN_AT, happened } from '../support/assertions/givenWhenThen.js';
import { giftIssued } from '../support/fixtures/giftEvents.js';

const test = suite('events of a later release');

/** As a process of a later release appends it, while this one still runs. */
const LATER = happened<DomainEvent>({ type: 'SomethingLater', data: { refund_id: 'r', owner: 'x' } });

const begun = <S, E extends DomainEvent>(aggregate: Aggregate<S, E>, first: DomainEvent): [Aggregate<S, E>, S] => [
  aggregate,
  fold(aggregate, [happened(first)]),
];

const STATES = [
  begun(giftAggregate, giftIssued()),
  begun(purchaseAggregate, { type: 'GiftsPurchased', data: {} }),
  begun(walletAggregate, { type: 'WalletToppedUp', data: { top_up_id: 'a', amount: 5 } }),
  begun(voucherCodeAggregate, { type: 'VoucherCodeAdded', data: { segment_id: 's', code: 'C', pin: null } }),
  begun(webhookEndpointAggregate, { type: 'WebhookEndpointCreated', data: { secret_id: 's' } }),
  begun(erasureRequestAggregate, { type: 'ErasureRequested', data: { erasure_id: 'e', due_at: GIVEN_AT } }),
] as unknown as readonly (readonly [Aggregate<object, DomainEvent>, object])[];

test('leave each aggregate’s state as it is', () => {
  for (const [aggregate, state] of STATES) assert.is(aggregate.evolve(state, LATER), state);
});

test('leave refunds, disputes and refunded money as they are', () => {
  assert.is(evolveReversals(NO_REVERSALS, LATER as never), NO_REVERSALS);
  const refunds = evolveRefunds(new Map(), LATER as never);
  assert.is(refunds.size, 0);
  const money = { refunds: {}, external: 350, disputes: {} };
  assert.is(evolveRefundedMoney(money, LATER as never), money);
});

test('do not matter to decisions that rest on the history itself', () => {
  assert.is(fold(HISTORY_ONLY, [LATER]), undefined);
});

test.run();
