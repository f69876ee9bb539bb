import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  disputeCause,
  isDisputeCause,
  replace,
  shownCause,
  supportCause,
  supportCauseIn,
} from '../../src/domain/supportActions.js';
import type { Block, GiftEvent } from '../../src/domain/gift/events.js';
import { giftAggregate, type Gift, type IssuedGift } from '../../src/domain/gift/state.js';
import { cancelForRefund } from '../../src/domain/purchase/refund.js';
import { given } from '../support/assertions/givenWhenThen.js';
import { giftIssued } from '../support/fixtures/giftEvents.js';

const test = suite('domain/causes of blocks');

const blocked = (cause: string, ticket?: string): GiftEvent & { readonly data: Block } => ({
  type: 'GiftBlocked',
  data: { cause, reason: 'x', ...(ticket === undefined ? {} : { ticket }) },
});
const gift = (...events: readonly GiftEvent[]) => given(giftAggregate, giftIssued(), ...events);
const found = (ticket: string | undefined, ...events: readonly GiftEvent[]): string | undefined =>
  supportCauseIn(gift(...events).state as IssuedGift, ticket);

test('a dispute, a ticket and support without one are causes of their own', () => {
  assert.is(disputeCause('d'), 'dispute:d');
  assert.is(supportCause(), 'support');
  assert.is(supportCause('7'), 'support:7');
  assert.equal([disputeCause('d'), supportCause('dispute:d'), supportCause()].map(isDisputeCause), [
    true,
    false,
    false,
  ]);
});

test('support’s block is found by its ticket, and one without a ticket by none', () => {
  const blocks = [blocked('dispute:d'), blocked('support'), blocked('support:1', 'T-1'), blocked('support:2', 'T-2')];
  assert.is(found(undefined, ...blocks), 'support');
  assert.is(found('T-2', ...blocks), 'support:2');
  assert.is(found('T-3', ...blocks), undefined);
  assert.is(found(undefined, blocked('support:1', 'T-1')), undefined);
  assert.is(found(undefined), undefined);
  assert.is(found('T-1'), undefined);
});

test('a ticket finds no block for a dispute', () => {
  assert.is(found('T-1', blocked('dispute:d', 'T-1')), undefined);
});

test('a block whose ticket was erased is shown, and found, by the id in its cause', () => {
  assert.is(found('1', blocked('support:1', ''), blocked('support:2', 'T-2')), 'support:1');
  assert.is(shownCause({ cause: 'support:1', reason: '', ticket: '' }), 'support:1');
  assert.is(shownCause({ cause: 'support:1', reason: '', ticket: 'T-1' }), 'support:T-1');
  assert.is(shownCause({ cause: 'dispute:d', reason: 'fraudulent' }), 'dispute:d');
});

test('a dispute counts alongside a block of support', () => {
  const both = gift(blocked('support'), blocked('dispute:d'));
  both
    .when((state: Gift) =>
      replace(
        state as IssuedGift,
        { now: '2026-03-02T10:00:00.000Z', payment: 'charged' },
        { replaced_by: { gift_id: 'g', transaction_id: 'n' }, reason: 'lost', voided: false },
      ),
    )
    .refused('gift_disputed');
  assert.equal(cancelForRefund(both.state as IssuedGift, { refund_id: 'r', voided: false }), { kept: 'disputed' });
});

test.run();
