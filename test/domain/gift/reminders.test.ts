import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftBlocked, GiftEvent, GiftExtended, GiftIssued, ReminderDue } from '../../../src/domain/gift/events.js';
import { remind } from '../../../src/domain/gift/reminders.js';
import { giftAggregate, type IssuedGift } from '../../../src/domain/gift/state.js';
import { given, happened } from '../../support/assertions/givenWhenThen.js';

const test = suite('domain/reminders');
const UNTIL = '2026-06-01T19:00:00.000Z';

const issued = (more: Partial<GiftIssued['data']> = {}): GiftIssued =>
  ({
    type: 'GiftIssued',
    data: {
      transaction_id: 't',
      receiver: { user_id: 'bob' },
      purchased_at: '2026-03-01T08:00:00.000Z',
      expires_on: '2026-06-30',
      ...more,
    },
  }) as GiftIssued;
const reminder = (days: number, expires_on = '2026-06-30'): ReminderDue => ({
  type: 'ReminderDue',
  data: { transaction_id: 't', days, expires_on, until: UNTIL },
});

type Given = Parameters<typeof given<unknown, GiftEvent>>[1];
const remindedOn = (today: string, ...events: Given[]): ReminderDue[] =>
  remind(given(giftAggregate, ...events).state as IssuedGift, { days: [30, 7], today, until: UNTIL });

test('reminds so many days before the last valid day, once each', () => {
  assert.equal(remindedOn('2026-05-30', issued()), []);
  assert.equal(remindedOn('2026-05-31', issued()), [reminder(30)]);
  assert.equal(remindedOn('2026-06-22', issued(), reminder(30)), []);
  assert.equal(remindedOn('2026-06-23', issued(), reminder(30)), [reminder(7)]);
  assert.equal(remindedOn('2026-06-24', issued(), reminder(30), reminder(7)), []);
});

test('of several that are due only the last is sent, and none after the last valid day', () => {
  assert.equal(remindedOn('2026-06-25', issued()), [reminder(7)]);
  assert.equal(remindedOn('2026-06-30', issued(), reminder(30)), [reminder(7)]);
  assert.equal(remindedOn('2026-07-01', issued()), []);
});

test('nobody is reminded of a gift that is redeemed, cancelled, blocked, not sent, or nobody’s', () => {
  const redeemed = { type: 'GiftRedeemed', data: { redemption_id: 'r', merchant_id: null } } as GiftEvent;
  const blocked: GiftBlocked = { type: 'GiftBlocked', data: { cause: 'support', reason: '' } };
  const day = '2026-05-31';
  assert.equal(remindedOn(day, issued(), redeemed), []);
  assert.equal(remindedOn(day, issued(), { type: 'GiftCancelled', data: { reason: 'r' } }), []);
  assert.equal(remindedOn(day, issued(), blocked), []);
  const unblocked: GiftEvent = { type: 'GiftUnblocked', data: { ...blocked.data, transaction_id: 't' } };
  assert.equal(remindedOn(day, issued(), blocked, unblocked), [reminder(30)]);
  assert.equal(remindedOn(day, issued({ scheduled: true })), []);
  assert.equal(remindedOn(day, issued({ scheduled: true }), { type: 'GiftReleased', data: { transaction_id: 't' } }), [
    reminder(30),
  ]);
  assert.equal(remindedOn(day, issued({ receiver: {} })), []);
  const claimed: GiftEvent = { type: 'GiftClaimed', data: { user_id: 'eve' } };
  assert.equal(remindedOn(day, issued({ receiver: {} }), claimed), [reminder(30)]);
});

test('who gets a gift on a reminder’s day, or later, has that reminder no more', () => {
  const release: GiftEvent = { type: 'GiftReleased', data: { transaction_id: 't' } };
  const claim: GiftEvent = { type: 'GiftClaimed', data: { user_id: 'eve' } };
  const reassignment: GiftEvent = {
    type: 'GiftReassigned',
    data: { transaction_id: 't', receiver: { user_id: 'eve' }, reason: '' },
  };
  const given: readonly (readonly [GiftIssued, GiftEvent])[] = [
    [issued({ scheduled: true }), release],
    [issued({ receiver: {} }), claim],
    [issued(), reassignment],
  ];
  for (const [bought, got] of given) {
    const late = [bought, happened(got, '2026-05-31T08:00:00.000Z')];
    assert.equal(remindedOn('2026-05-31', ...late), [], got.type);
    assert.equal(remindedOn('2026-06-22', ...late), [], got.type);
    assert.equal(remindedOn('2026-06-23', ...late), [reminder(7)], got.type);
    assert.equal(remindedOn('2026-05-31', bought, happened(got, '2026-05-30T23:59:00.000Z')), [reminder(30)], got.type);
  }
  assert.equal(remindedOn('2026-05-31', issued(), happened(claim, '2026-05-31T08:00:00.000Z')), [reminder(30)]);
});

test('a late reminder is left out on the day before the next', () => {
  assert.equal(remindedOn('2026-06-21', issued()), [reminder(30)]);
  assert.equal(remindedOn('2026-06-22', issued()), []);
  const daily = remind(given(giftAggregate, issued()).state as IssuedGift, {
    days: [2, 1],
    today: '2026-06-28',
    until: UNTIL,
  });
  assert.equal(daily, [reminder(2)], 'it is not late');
});

test('an extension moves the reminders; one that was set too late for a reminder has none', () => {
  const extended = (expires_on: string, on: string): Given =>
    happened<GiftExtended>({ type: 'GiftExtended', data: { expires_on, voucher_expires_at: null, reason: '' } }, on);
  const later = [issued(), reminder(30), reminder(7), extended('2026-12-31', '2026-06-25T00:00:00.000Z')];
  assert.equal(remindedOn('2026-07-01', ...later), []);
  assert.equal(remindedOn('2026-12-01', ...later), [reminder(30, '2026-12-31')]);
  const short = extended('2026-07-10', '2026-06-25T00:00:00.000Z');
  assert.equal(remindedOn('2026-06-26', issued(), short), []);
  assert.equal(remindedOn('2026-07-03', issued(), short), [reminder(7, '2026-07-10')]);
  assert.equal(remindedOn('2026-06-05', issued({ purchased_at: '2026-06-05T08:00:00.000Z' })), []);
});

test.run();
