import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftEvent } from '../../src/domain/gift/events.js';
import { giftAggregate, type IssuedGift } from '../../src/domain/gift/state.js';
import { POSTPONED, whyNotNotified } from '../../src/domain/whyNotNotified.js';
import { given } from '../support/assertions/givenWhenThen.js';
import { giftIssued, giftRedeemed } from '../support/fixtures/giftEvents.js';

const test = suite('domain/why a receiver is not notified');

const NOW = '2026-03-02T10:00:00.000Z';
const UNTIL = '2026-03-02T19:00:00.000Z';
const gift = (...events: readonly GiftEvent[]): IssuedGift =>
  given(giftAggregate, giftIssued(), ...events).state as IssuedGift;
const blocked: GiftEvent = { type: 'GiftBlocked', data: { cause: 'support', reason: '' } };
const cancelled: GiftEvent = { type: 'GiftCancelled', data: { reason: 'refunded' } };

test('a receiver is notified of a gift that can be used', () => {
  assert.is(whyNotNotified(gift(), { outdated: false }, NOW), undefined);
  assert.is(whyNotNotified(gift(), { outdated: false, reminder: { until: UNTIL } }, NOW), undefined);
});

test('nobody is notified of a gift that can’t be used', () => {
  const why = (of: IssuedGift, now = NOW): string | undefined => whyNotNotified(of, { outdated: false }, now);
  assert.is(why(gift(cancelled)), 'gift is cancelled');
  assert.is(why(gift(giftRedeemed('r'))), 'gift is redeemed');
  assert.is(why(gift(), '2026-07-01T00:00:00.000Z'), 'gift is expired');
  assert.is(why(gift(blocked)), POSTPONED);
});

test('the former receiver of a gift is not notified, and the gift’s own fault comes first', () => {
  assert.is(whyNotNotified(gift(), { outdated: true }, NOW), 'given to another receiver');
  assert.is(whyNotNotified(gift(cancelled), { outdated: true }, NOW), 'gift is cancelled');
});

test('a reminder is not sent once it is needless, or the hours for it are over', () => {
  const why = (outdated: boolean, now: string): string | undefined =>
    whyNotNotified(gift(), { outdated, reminder: { until: UNTIL } }, now);
  assert.is(why(true, NOW), 'no longer to be reminded');
  assert.is(why(false, '2026-03-02T18:59:59.999Z'), undefined);
  assert.is(why(false, UNTIL), 'no longer to be reminded');
});

test.run();
