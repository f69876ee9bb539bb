import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftsPurchased, PurchaseEvent } from '../../../src/domain/purchase/events.js';
import { purchaseAggregate } from '../../../src/domain/purchase/state.js';
import { atOnce, finishSend, reschedule, sendTime, startSend } from '../../../src/domain/purchase/sending.js';
import { given } from '../../support/assertions/givenWhenThen.js';
import { refusal } from '../../support/assertions/rejects.js';

const test = suite('domain/purchase/sending');
const [NOON, ONE] = ['2027-03-01T12:00:00.000Z', '2027-03-01T13:00:00.000Z'];

const bought = (send_at?: string): GiftsPurchased =>
  ({
    type: 'GiftsPurchased',
    data: { expires_on: '2027-12-31', receivers: [], ...(send_at === undefined ? {} : { send_at }) },
  }) as unknown as GiftsPurchased;
const charged = { type: 'PaymentCharged', data: { amount: 1, provider: 'p', charge_id: 'c' } } as const;
const declined = { type: 'PaymentDeclined', data: { provider: 'p', code: 'c' } } as const;
const moved = (send_at: string | null) => ({ type: 'SendRescheduled', data: { send_at } }) as const;
const started = { type: 'SendStarted', data: { send_at: NOON } } as const;
const finished = { type: 'SendFinished', data: {} } as const;
const purchase = (...events: PurchaseEvent[]) => given(purchaseAggregate, ...events);

test('a paid purchase is sent once its time has come, and not before', () => {
  assert.equal(startSend(purchase(bought(NOON), charged).state, '2027-03-01T11:59:59.999Z'), []);
  assert.equal(startSend(purchase(bought(NOON), charged).state, NOON), [started]);
  assert.equal(startSend(purchase(bought(NOON)).state, ONE), [], 'not paid for');
  assert.equal(startSend(purchase(bought(NOON), declined).state, ONE), []);
  assert.equal(startSend(purchase(bought(), charged).state, ONE), [], 'sent at once');
});

test('the last time that the buyer named counts; without one nothing is sent', () => {
  assert.equal(startSend(purchase(bought(NOON), charged, moved(ONE)).state, NOON), []);
  assert.equal(startSend(purchase(bought(ONE), moved(NOON), charged).state, NOON), [started]);
  assert.equal(startSend(purchase(bought(NOON), charged, moved(null)).state, ONE), []);
});

test('it starts and finishes once', () => {
  assert.equal(startSend(purchase(bought(NOON), charged, started).state, ONE), []);
  assert.equal(finishSend(purchase(bought(NOON), charged, started).state), [finished]);
  assert.equal(finishSend(purchase(bought(NOON), charged, started, finished).state), []);
  assert.equal(finishSend(purchase(bought(NOON), charged).state), []);
  assert.equal(finishSend(purchase(bought(), charged).state), [], 'sent at once');
  const { state } = purchase(bought(NOON), charged, started, finished);
  assert.equal(state.status === 'charged' && state.sending, { status: 'finished', sendAt: NOON });
});

test('the time is changed until it is sent, also before it is paid for', () => {
  assert.equal(reschedule(purchase(bought(NOON)).state, ONE), [moved(ONE)]);
  assert.equal(reschedule(purchase(bought(NOON), charged).state, null), [moved(null)]);
  assert.equal(reschedule(purchase(bought(NOON), charged, moved(null)).state, NOON), [moved(NOON)]);
  assert.equal(reschedule(purchase(bought(NOON)).state, NOON), [], 'it is so already');
  for (const events of [
    [bought(), charged],
    [bought(NOON), declined],
    [bought(NOON), charged, started],
    [bought(NOON), charged, started, finished],
  ])
    assert.throws(() => reschedule(purchase(...events).state, ONE), refusal('nothing_to_send'));
});

test('a time has its zone, lies ahead by a leap year at most, and is no later than the expiry', () => {
  const read = (text: string, expires_on = '2030-01-01'): string => sendTime(text, { now: NOON, expires_on });
  assert.is(read('2027-03-01T14:00:00+01:00'), ONE);
  assert.is(read('2027-03-01T13:00Z'), ONE);
  assert.is(read('2027-03-01 14:00+0100'), ONE);
  assert.is(read('2028-03-01T12:00:00.000Z'), '2028-03-01T12:00:00.000Z', 'a leap year');
  assert.is(read('2027-03-02T00:30:00+01:00', '2027-03-01'), '2027-03-01T23:30:00.000Z', 'the last day, in UTC');
  for (const text of [
    '2028-03-01T12:00:00.001Z',
    NOON,
    '2027-03-01T13:00:00',
    '2027-03-01',
    '2027-02-29T13:00:00Z',
    '2027-13-01T13:00:00Z',
    '2027-04-01T24:00:00Z',
    '2027-04-01T12:00:60Z',
    '2027-04-01T12:00:00+24:00',
    '2027-04-01T12:00:00+14:01',
    ' 2027-04-01T12:00:00Z',
    '+012027-04-01T12:00:00Z',
    'soon',
    '',
  ])
    assert.throws(() => read(text), refusal('invalid_send_at'), text);
  assert.throws(() => read('2027-03-02T00:00:00Z', '2027-03-01'), refusal('invalid_send_at'));
});

test('gifts are sent at once until their last valid day (UTC) is over', () => {
  assert.is(atOnce({ now: NOON, expires_on: '2027-03-02' }), NOON);
  assert.is(atOnce({ now: NOON, expires_on: '2027-03-01' }), NOON);
  assert.throws(() => atOnce({ now: NOON, expires_on: '2027-02-28' }), refusal('invalid_send_at'));
});

test.run();
