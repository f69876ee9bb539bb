import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { rescheduleSend, SEND_NOW } from '../../src/commands/rescheduleSend.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import type { EventStore } from '../../src/ports/eventStore.js';
import { refusal } from '../support/assertions/rejects.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';
import { giftIssued, SEED } from '../support/fixtures/giftEvents.js';
import { eventOf } from '../support/service/testLog.js';

const test = suite('commands/reschedule send');
const LAST_DAY = '2027-03-31';

const bought = async (send_at?: string): Promise<EventStore> => {
  const events = memoryEvents();
  const purchase = { seed: SEED, expires_on: LAST_DAY, receivers: [], ...(send_at === undefined ? {} : { send_at }) };
  await events.append(transactionStream('t'), [eventOf('GiftsPurchased', purchase)], 'none');
  return events;
};
const change = async (events: EventStore, sendAt: string | null, now: string): Promise<unknown> => {
  const context = { commandId: `${now} ${sendAt}`, correlationId: 'c', by: { user: 'u' }, now };
  return (await rescheduleSend({ events }, 't', context, sendAt)).own.map(({ data }) => data);
};

test('the buyer sends at once until the end of the last valid day, and not when the gifts are expired', async () => {
  const events = await bought('2027-03-30T12:00:00.000Z');
  assert.deepEqual(await change(events, null, '2027-03-01T00:00:00.000Z'), [{ send_at: null }]);
  const expired = '2027-04-01T00:00:00.000Z';
  await assert.rejects(change(events, SEND_NOW, expired), refusal('invalid_send_at'));
  assert.deepEqual(await change(events, null, expired), [], 'it is so already');
  const end = '2027-03-31T23:59:59.999Z';
  assert.deepEqual(await change(events, SEND_NOW, end), [{ send_at: end }]);
});

test('the buyer sends gifts that support has extended until the last day of one that can be used', async () => {
  const events = memoryEvents();
  const [first = '', second = ''] = deriveGiftIds(SEED, 2).map(({ gift_id }) => gift_id);
  const purchase = { seed: SEED, expires_on: LAST_DAY, receivers: [{}, {}], send_at: '2027-03-30T12:00:00.000Z' };
  await events.append(transactionStream('t'), [eventOf('GiftsPurchased', purchase)], 'none');
  const extended = { expires_on: '2027-05-31', voucher_expires_at: null, reason: 'x' };
  for (const [giftId, ...more] of [[first], [second, { type: 'GiftExtended', data: extended }]] as const)
    events.given(giftStream(giftId), giftIssued({ expires_on: LAST_DAY, scheduled: true }), ...more);
  const later = '2027-05-01T00:00:00.000Z';
  const last = '2027-05-31T22:00:00.000Z';
  assert.deepEqual(await change(events, last, '2027-03-01T00:00:00.000Z'), [{ send_at: last }]);
  assert.deepEqual(await change(events, null, later), [{ send_at: null }]);
  await assert.rejects(change(events, '2027-06-01T00:00:00Z', later), refusal('invalid_send_at'));
  assert.deepEqual(await change(events, SEND_NOW, later), [{ send_at: later }]);
  events.given(giftStream(second), { type: 'GiftCancelled', data: { reason: 'x' } });
  await assert.rejects(change(events, last, later), refusal('invalid_send_at'));
});

test('what is sent at once, or unknown, is refused for that, whatever time is named', async () => {
  for (const sendAt of [SEND_NOW, null, 'soon', '2099-01-01T00:00:00Z'])
    for (const events of [await bought(), memoryEvents()])
      await assert.rejects(change(events, sendAt, '2027-05-01T00:00:00.000Z'), refusal('nothing_to_send'));
});

test('takes fifty other times of a purchase, and after that now or null', async () => {
  const events = await bought('2027-03-30T12:00:00.000Z');
  const at = (n: number): string => new Date(Date.parse('2027-03-01T00:00:00Z') + n * 60_000).toISOString();
  const now = '2027-02-01T00:00:00.000Z';
  for (let n = 1; n <= 50; n++) assert.deepEqual(await change(events, at(n), now), [{ send_at: at(n) }]);
  await assert.rejects(change(events, at(51), now), refusal('rescheduled_too_often'));
  assert.deepEqual(await change(events, at(50), '2027-02-02T00:00:00.000Z'), [], 'it is so already');
  assert.deepEqual(await change(events, null, now), [{ send_at: null }]);
  await assert.rejects(change(events, at(52), now), refusal('rescheduled_too_often'));
  assert.deepEqual(await change(events, SEND_NOW, now), [{ send_at: now }]);
});

test.run();
