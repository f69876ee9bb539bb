import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { redactOtherGifts } from '../../../src/ops/history/redactOtherGifts.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';

const test = suite('audit/redactOtherGifts');
const SEED = 'ab'.repeat(32);
const [a = '', b = '', c = ''] = deriveGiftIds(SEED, 3).map((ids) => ids.gift_id);

const event = (type: string, data: object): RecordedEvent => ({
  type,
  data,
  id: type,
  at: '2026-01-01T00:00:00.000Z',
  stream: 'transaction-t',
  revision: 0,
  position: '1',
  metadata: { commandId: 'c', correlationId: 'r', by: {} },
});
const PURCHASE = [
  event('GiftsPurchased', { seed: SEED, receivers: [{ user_id: 'ua' }, { user_id: 'ub' }, {}] }),
  event('PaymentCharged', { amount: 3 }),
  event('RefundRequested', { refund_id: 'r1', gift_ids: [a, b], reason: 'x' }),
  event('RefundStarted', { refund_id: 'r1', gift_ids: [a], kept: { redeemed: [b] }, amount: 1 }),
  event('GiftsRefunded', { refund_id: 'r1', gift_ids: [a], amount: 1 }),
  event('RefundRequested', { refund_id: 'r2', gift_ids: [c], reason: 'y' }),
  event('NothingRefunded', { refund_id: 'r2', kept: { code_out: [c] } }),
  event('RefundStarted', { refund_id: 'late', gift_ids: [], kept: {}, amount: 3 }),
];

test('one gift sees its own receiver and refunds, the others are counted', () => {
  const { events, isOthers } = redactOtherGifts(PURCHASE, [b]);
  assert.equal(
    events.map(({ type }) => type),
    ['GiftsPurchased', 'PaymentCharged', 'RefundRequested', 'RefundStarted', 'GiftsRefunded', 'RefundStarted'],
  );
  assert.equal(
    events.map(({ data }) => data),
    [
      { seed: SEED, receivers: [{ user_id: 'ub' }], other_receivers: 2 },
      { amount: 3 },
      { refund_id: 'r1', gift_ids: [b], reason: 'x', other_gifts: 1 },
      { refund_id: 'r1', gift_ids: [], kept: { redeemed: [b] }, amount: 1, other_gifts: 1 },
      { refund_id: 'r1', gift_ids: [], amount: 1, other_gifts: 1 },
      { refund_id: 'late', gift_ids: [], kept: {}, amount: 3 },
    ],
  );
  assert.equal([isOthers('r1'), isOthers('r2'), isOthers('unheard')], [false, true, false]);
  assert.ok(!JSON.stringify(events).includes(a) && !JSON.stringify(events).includes(c));
  assert.equal(
    redactOtherGifts(PURCHASE, [a]).events[3]?.data,
    { refund_id: 'r1', gift_ids: [a], kept: {}, amount: 1, other_gifts: 1 },
    'nor is it told which others were kept',
  );
});

test('all gifts together see everything as it stands', () => {
  const { events, isOthers } = redactOtherGifts(PURCHASE, [a, b, c]);
  assert.is(events, PURCHASE);
  assert.is(isOthers('r1'), false);
  assert.equal(redactOtherGifts([], [a]).events, []);
});

test('a refund of this gift alone stands as it is', () => {
  const { events } = redactOtherGifts(PURCHASE, [c]);
  assert.equal(events.slice(2), PURCHASE.slice(5));
});

test.run();
