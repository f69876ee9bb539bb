import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { expiryEvents } from '../../../src/domain/gift/expiry.js';
import type { GiftEvent, GiftExtended, GiftIssued } from '../../../src/domain/gift/events.js';
import { giftAggregate, type IssuedGift } from '../../../src/domain/gift/state.js';
import { given, happened } from '../../support/assertions/givenWhenThen.js';

const test = suite('domain/gift expiry');

const issued = {
  type: 'GiftIssued',
  data: { receiver: {}, purchased_at: '2026-03-01T08:00:00.000Z', expires_on: '2026-06-30' },
} as GiftIssued;
const expiring = (expires_on = '2026-06-30') => ({ type: 'GiftExpiring', data: { expires_on } }) as const;
const expired = (expires_on = '2026-06-30') => ({ type: 'GiftExpired', data: { expires_on } }) as const;
const redeemed = { type: 'GiftRedeemed', data: { redemption_id: 'r', merchant_id: null } } as GiftEvent;
const extended = (expires_on: string, on: string) =>
  happened<GiftExtended>({ type: 'GiftExtended', data: { expires_on, voucher_expires_at: null, reason: '' } }, on);

const newsOn = (today: string, ...events: Parameters<typeof given<unknown, GiftEvent>>[1][]) =>
  expiryEvents(given(giftAggregate, issued, ...events).state as IssuedGift, today);

test('thirty days before its last valid day a gift expires soon, and after it has expired, each said once', () => {
  assert.equal(newsOn('2026-05-30'), []);
  assert.equal(newsOn('2026-05-31'), [expiring()]);
  assert.equal(newsOn('2026-06-30'), [expiring()], 'later, where nobody looked before; it is still valid');
  assert.equal(newsOn('2026-06-15', expiring()), []);
  assert.equal(newsOn('2026-07-01', expiring()), [expired()]);
  assert.equal(newsOn('2026-07-01'), [expired()]);
  assert.equal(newsOn('2026-07-02', expiring(), expired()), []);
});

test('a redeemed or cancelled gift does not expire; one whose redemption was reversed does', () => {
  for (const today of ['2026-06-15', '2026-07-01']) {
    assert.equal(newsOn(today, redeemed), []);
    assert.equal(newsOn(today, { type: 'GiftCancelled', data: { reason: 'r' } }), []);
  }
  const reversed: GiftEvent = {
    type: 'GiftUnredeemed',
    data: { redemption_id: 'r', location_id: 'l', merchant_id: null },
  };
  assert.equal(newsOn('2026-07-01', redeemed, reversed), [expired()]);
});

test('an extended gift expires at its new day, also where it had expired', () => {
  const later = extended('2026-12-31', '2026-06-20T00:00:00.000Z');
  assert.equal(newsOn('2026-07-01', expiring(), later), []);
  assert.equal(newsOn('2026-12-01', expiring(), later), [expiring('2026-12-31')]);
  const revived = extended('2026-12-31', '2026-07-20T00:00:00.000Z');
  assert.equal(newsOn('2027-01-01', expiring(), expired(), revived), [expired('2026-12-31')]);
});

test('of a day that was set with less than thirty days to go it is not said that it is near', () => {
  const short = extended('2026-07-05', '2026-06-29T00:00:00.000Z');
  assert.equal(newsOn('2026-07-01', expiring(), short), []);
  assert.equal(newsOn('2026-07-06', expiring(), short), [expired('2026-07-05')]);
  const onTheDay = extended('2026-07-30', '2026-06-30T12:00:00.000Z');
  assert.equal(newsOn('2026-07-01', expiring(), onTheDay), []);
  const dayBefore = extended('2026-07-30', '2026-06-29T12:00:00.000Z');
  assert.equal(newsOn('2026-07-01', expiring(), dayBefore), [expiring('2026-07-30')]);
});

test.run();
