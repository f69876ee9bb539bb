/** Reminders are sent once, in the hours of the receiver's day, whatever dies (docs/api/gifts.md#reminders). */
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { reminderRounds } from '../../../src/processors/schedule/remind.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { dueGifts } from '../../../src/projections/dueGifts.js';
import { scheduleProjection } from '../../../src/projections/schedule.js';
import { collectionOf } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { mortal } from '../../support/faults/mortal.js';
import type { Bought, House } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('reminders');
test.before.each(({ house }) => {
  const user = (id: string, phone_number: string | null, locale: string | null = null): void =>
    void house.contacts.set(id, { name: id, phone_number, device_tokens: phone_number === null ? ['d'] : [], locale });
  user('london', '+447700900101');
  user('tokyo', null, 'ja-JP');
  user('eve', '+447700900102');
});
const { signal } = new AbortController();
/** Of the house's gifts the last valid day is 2099-01-01. */
const THIRTY_BEFORE = '2098-12-02';
const SEVEN_BEFORE = '2098-12-25';

/** Bought and issued long ago; their receivers were told. */
async function bought(house: House, receivers: readonly object[]): Promise<Bought> {
  const at = '2098-01-01T00:00:00.000Z';
  const one = await house.buy(receivers, { at });
  const { transactionId: transaction_id } = one;
  await house.append(transactionStream(transaction_id), 'PaymentCharged', { amount: 1, provider: 'p', charge_id: 'c' });
  for (const [index, gift] of one.giftIds.entries()) {
    const receiver = receivers[index] ?? {};
    const issued = { transaction_id, index, receiver, purchased_at: at, expires_on: '2099-01-01', sender_id: 'buyer' };
    await house.append(giftStream(gift), 'GiftIssued', issued, at);
    if (Object.keys(receiver).length === 0) continue;
    const asked_by = (await house.events.read(giftStream(gift)))[0]?.id;
    const sent = { channel: 'sms', provider: 'p', message_id: 'm', attempt: 1, asked_by };
    await house.append(notificationStream(gift), 'NotificationStarted', { transaction_id, ...sent }, at);
    await house.append(notificationStream(gift), 'NotificationSent', sent, at);
  }
  await known(house, transaction_id, '2099-01-01');
  return one;
}

async function known({ reads }: House, id: string, expires_on: string): Promise<void> {
  const collection = collectionOf(scheduleProjection);
  await reads.ensure(collection);
  await reads.write([{ collection, documents: [{ id, position: '1', body: { expires_on } }] }]);
  await reads.activate(collection.name, collection.version);
}

interface Clock {
  now: string;
}

function rounds(house: House, clock: Clock, deps: Pick<House['deps'], 'events' | 'records'> = house.deps) {
  const { events, records } = deps;
  const round = reminderRounds({
    events,
    records,
    writer: openWriter(events, () => Date.parse(clock.now)),
    mayAct: () => undefined,
    due: dueGifts(house.reads, { ...openReadModel(house.reads, scheduleProjection), reached: async () => true }),
    contact: house.deps.contact,
    numberOf: house.deps.numberOf,
    days: [30, 7],
    hours: { from: 9 * 60, to: 20 * 60 },
  });
  return async (now: string): Promise<void> => {
    clock.now = now;
    await round(now, signal);
  };
}

const dueOf = async (house: House, gift = ''): Promise<number> =>
  (await house.types(giftStream(gift))).filter((type) => type === 'ReminderDue').length;
const storyOf = async (house: House, gift = ''): Promise<string[]> =>
  (await house.types(notificationStream(gift))).slice(2);
const sentTo = (house: House): string[] =>
  house.lines
    .filter(({ msg }) => msg === 'simulated notification sent')
    .map(({ to }) => String(to).slice(-3))
    .sort();

test('reminds each receiver in the morning of their own day, once a reminder', async ({ house }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(house, [{ user_id: 'london' }, { user_id: 'tokyo' }, {}]);
  const [london = '', tokyo = '', nobody = ''] = giftIds;
  const round = rounds(house, clock);
  const due = async (): Promise<number[]> => Promise.all([dueOf(house, london), dueOf(house, tokyo)]);
  await round('2098-12-01T23:59:00.000Z');
  assert.equal(await due(), [0, 0]);
  await round(`${THIRTY_BEFORE}T00:00:00.000Z`);
  assert.equal(await due(), [0, 1], 'nine in the morning in Tokyo');
  await round(`${THIRTY_BEFORE}T08:59:59.000Z`);
  assert.equal(await due(), [0, 1]);
  await round(`${THIRTY_BEFORE}T09:00:00.000Z`);
  for (const hour of ['10', '11', '19', '23']) await round(`${THIRTY_BEFORE}T${hour}:00:00.000Z`);
  await rounds(house, clock)('2098-12-03T12:00:00.000Z');
  assert.equal(await due(), [1, 1]);
  await house.work();
  house.process({ now: () => Date.parse(`${THIRTY_BEFORE}T09:00:01.000Z`) });
  await house.until(async () => (await house.all('ReminderSent')).length === 2);
  for (const gift of [london, tokyo]) assert.equal(await storyOf(house, gift), ['NotificationStarted', 'ReminderSent']);
  await rounds(house, clock)(`${SEVEN_BEFORE}T10:00:00.000Z`);
  assert.equal(await due(), [2, 2]);
  assert.is(await dueOf(house, nobody), 0);
});

test('reminds who claimed it, and not who redeemed, has no address, or was erased', async ({ house }) => {
  const clock: Clock = { now: '' };
  const receivers = [{}, { user_id: 'london' }, { user_id: 'unknown' }, { phone_id: 'erased' }];
  const { giftIds } = await bought(house, receivers);
  const [claimed = '', redeemed = '', unknown = '', erased = ''] = giftIds;
  await house.append(giftStream(claimed), 'GiftClaimed', { user_id: 'eve' });
  await house.append(giftStream(redeemed), 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await rounds(house, clock)(`${THIRTY_BEFORE}T12:00:00.000Z`);
  await house.work();
  house.process({ now: () => Date.parse(clock.now) });
  await house.until(async () => (await house.all('ReminderSent')).length === 1);
  assert.equal(sentTo(house), ['102']);
  for (const gift of [redeemed, unknown, erased]) assert.is(await dueOf(house, gift), 0);
});

test('a reminder that could not be sent within the hours of its day is not sent at night', async ({ house }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(house, [{ user_id: 'london' }]);
  await rounds(house, clock)(`${THIRTY_BEFORE}T19:30:00.000Z`);
  assert.is(await dueOf(house, giftIds[0]), 1);
  clock.now = `${THIRTY_BEFORE}T20:00:00.000Z`;
  await house.work();
  house.process({ now: () => Date.parse(clock.now) });
  await house.until(async () => (await house.all('NotificationFailed')).length === 1);
  assert.equal(sentTo(house), []);
});

test('an extended gift is reminded of by its new day', async ({ house }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(house, [{ user_id: 'london' }]);
  const [gift = ''] = giftIds;
  const later = { expires_on: '2099-06-01', voucher_expires_at: null, reason: '' };
  await house.append(giftStream(gift), 'GiftExtended', later, '2098-11-01T00:00:00.000Z');
  await known(house, `gift/${gift}`, later.expires_on);
  await rounds(house, clock)(`${THIRTY_BEFORE}T12:00:00.000Z`);
  assert.is(await dueOf(house, gift), 0);
  await rounds(house, clock)('2099-05-02T12:00:00.000Z');
  assert.is(await dueOf(house, gift), 1);
});

for (const moment of ['before', 'after'] as const) {
  test(`reminds once where it dies ${moment} any one append`, async ({ house }) => {
    const clock: Clock = { now: '' };
    const { giftIds } = await bought(house, Array(3).fill({ user_id: 'london' }));
    let died = 0;
    for (let at = 1; ; at++) {
      const doomed = mortal(house.deps, at, moment);
      await rounds(house, clock, doomed.deps)(`${THIRTY_BEFORE}T12:00:00.000Z`).catch(() => undefined);
      if (!doomed.dead) break;
      died++;
    }
    assert.ok(died >= 1);
    for (const gift of giftIds) assert.is(await dueOf(house, gift), 1);
    await house.work();
    const processes = [1, 2].map(() => house.process({ now: () => Date.parse(clock.now) }));
    await house.until(async () => (await house.all('ReminderSent')).length === 3);
    await Promise.all(processes.map(async (one) => one.close()));
    house.process({ now: () => Date.parse(clock.now) });
    await rounds(house, clock)(`${THIRTY_BEFORE}T13:00:00.000Z`);
    assert.is(sentTo(house).length, 3);
  });
}

test.run();
