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
import { crashable } from '../../support/faults/crashable.js';
import type { TestInstallation } from '../../support/service/installation.js';
import type { Bought } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('reminders');
test.before.each(({ installation }) => {
  const user = (id: string, phone_number: string | null, locale: string | null = null): void =>
    void installation.contacts.set(id, {
      name: id,
      phone_number,
      device_tokens: phone_number === null ? ['d'] : [],
      locale,
    });
  user('london', '+447700900101');
  user('tokyo', null, 'ja-JP');
  user('eve', '+447700900102');
});
const { signal } = new AbortController();
/** Of the house's gifts the last valid day is 2099-01-01. */
const THIRTY_BEFORE = '2098-12-02';
const SEVEN_BEFORE = '2098-12-25';

/** Bought and issued long ago; their receivers were told. */
async function bought(installation: TestInstallation, receivers: readonly object[]): Promise<Bought> {
  const at = '2098-01-01T00:00:00.000Z';
  const one = await installation.buy(receivers, { at });
  const { transactionId: transaction_id } = one;
  await installation.append(transactionStream(transaction_id), 'PaymentCharged', {
    amount: 1,
    provider: 'p',
    charge_id: 'c',
  });
  for (const [index, gift] of one.giftIds.entries()) {
    const receiver = receivers[index] ?? {};
    const issued = { transaction_id, index, receiver, purchased_at: at, expires_on: '2099-01-01', sender_id: 'buyer' };
    await installation.append(giftStream(gift), 'GiftIssued', issued, at);
    if (Object.keys(receiver).length === 0) continue;
    const asked_by = (await installation.events.read(giftStream(gift)))[0]?.id;
    const sent = { channel: 'sms', provider: 'p', message_id: 'm', attempt: 1, asked_by };
    await installation.append(notificationStream(gift), 'NotificationStarted', { transaction_id, ...sent }, at);
    await installation.append(notificationStream(gift), 'NotificationSent', sent, at);
  }
  await known(installation, transaction_id, '2099-01-01');
  return one;
}

async function known({ reads }: TestInstallation, id: string, expires_on: string): Promise<void> {
  const collection = collectionOf(scheduleProjection);
  await reads.ensure(collection);
  await reads.write([{ collection, documents: [{ id, position: '1', body: { expires_on } }] }]);
  await reads.activate(collection.name, collection.version);
}

interface Clock {
  now: string;
}

function rounds(
  installation: TestInstallation,
  clock: Clock,
  deps: Pick<TestInstallation['deps'], 'events' | 'records'> = installation.deps,
) {
  const { events, records } = deps;
  const round = reminderRounds({
    events,
    records,
    writer: openWriter(events, () => Date.parse(clock.now)),
    mayAct: () => undefined,
    due: dueGifts(installation.reads, {
      ...openReadModel(installation.reads, scheduleProjection),
      reached: async () => true,
    }),
    contact: installation.deps.contact,
    numberOf: installation.deps.numberOf,
    days: [30, 7],
    hours: { from: 9 * 60, to: 20 * 60 },
  });
  return async (now: string): Promise<void> => {
    clock.now = now;
    await round(now, signal);
  };
}

const dueOf = async (installation: TestInstallation, gift = ''): Promise<number> =>
  (await installation.types(giftStream(gift))).filter((type) => type === 'ReminderDue').length;
const storyOf = async (installation: TestInstallation, gift = ''): Promise<string[]> =>
  (await installation.types(notificationStream(gift))).slice(2);
const sentTo = (installation: TestInstallation): string[] =>
  installation.lines
    .filter(({ msg }) => msg === 'simulated notification sent')
    .map(({ to }) => String(to).slice(-3))
    .sort();

test('reminds each receiver in the morning of their own day, once a reminder', async ({ installation }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(installation, [{ user_id: 'london' }, { user_id: 'tokyo' }, {}]);
  const [london = '', tokyo = '', nobody = ''] = giftIds;
  const round = rounds(installation, clock);
  const due = async (): Promise<number[]> => Promise.all([dueOf(installation, london), dueOf(installation, tokyo)]);
  await round('2098-12-01T23:59:00.000Z');
  assert.equal(await due(), [0, 0]);
  await round(`${THIRTY_BEFORE}T00:00:00.000Z`);
  assert.equal(await due(), [0, 1], 'nine in the morning in Tokyo');
  await round(`${THIRTY_BEFORE}T08:59:59.000Z`);
  assert.equal(await due(), [0, 1]);
  await round(`${THIRTY_BEFORE}T09:00:00.000Z`);
  for (const hour of ['10', '11', '19', '23']) await round(`${THIRTY_BEFORE}T${hour}:00:00.000Z`);
  await rounds(installation, clock)('2098-12-03T12:00:00.000Z');
  assert.equal(await due(), [1, 1]);
  await installation.work();
  installation.process({ now: () => Date.parse(`${THIRTY_BEFORE}T09:00:01.000Z`) });
  await installation.until(async () => (await installation.all('ReminderSent')).length === 2);
  for (const gift of [london, tokyo])
    assert.equal(await storyOf(installation, gift), ['NotificationStarted', 'ReminderSent']);
  await rounds(installation, clock)(`${SEVEN_BEFORE}T10:00:00.000Z`);
  assert.equal(await due(), [2, 2]);
  assert.is(await dueOf(installation, nobody), 0);
});

test('reminds who claimed it, and not who redeemed, has no address, or was erased', async ({ installation }) => {
  const clock: Clock = { now: '' };
  const receivers = [{}, { user_id: 'london' }, { user_id: 'unknown' }, { phone_id: 'erased' }];
  const { giftIds } = await bought(installation, receivers);
  const [claimed = '', redeemed = '', unknown = '', erased = ''] = giftIds;
  await installation.append(giftStream(claimed), 'GiftClaimed', { user_id: 'eve' });
  await installation.append(giftStream(redeemed), 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await rounds(installation, clock)(`${THIRTY_BEFORE}T12:00:00.000Z`);
  await installation.work();
  installation.process({ now: () => Date.parse(clock.now) });
  await installation.until(async () => (await installation.all('ReminderSent')).length === 1);
  assert.equal(sentTo(installation), ['102']);
  for (const gift of [redeemed, unknown, erased]) assert.is(await dueOf(installation, gift), 0);
});

test('a reminder that could not be sent within the hours of its day is not sent at night', async ({ installation }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(installation, [{ user_id: 'london' }]);
  await rounds(installation, clock)(`${THIRTY_BEFORE}T19:30:00.000Z`);
  assert.is(await dueOf(installation, giftIds[0]), 1);
  clock.now = `${THIRTY_BEFORE}T20:00:00.000Z`;
  await installation.work();
  installation.process({ now: () => Date.parse(clock.now) });
  await installation.until(async () => (await installation.all('NotificationFailed')).length === 1);
  assert.equal(sentTo(installation), []);
});

test('an extended gift is reminded of by its new day', async ({ installation }) => {
  const clock: Clock = { now: '' };
  const { giftIds } = await bought(installation, [{ user_id: 'london' }]);
  const [gift = ''] = giftIds;
  const later = { expires_on: '2099-06-01', voucher_expires_at: null, reason: '' };
  await installation.append(giftStream(gift), 'GiftExtended', later, '2098-11-01T00:00:00.000Z');
  await known(installation, `gift/${gift}`, later.expires_on);
  await rounds(installation, clock)(`${THIRTY_BEFORE}T12:00:00.000Z`);
  assert.is(await dueOf(installation, gift), 0);
  await rounds(installation, clock)('2099-05-02T12:00:00.000Z');
  assert.is(await dueOf(installation, gift), 1);
});

for (const moment of ['before', 'after'] as const) {
  test(`reminds once where it dies ${moment} any one append`, async ({ installation }) => {
    const clock: Clock = { now: '' };
    const { giftIds } = await bought(installation, Array(3).fill({ user_id: 'london' }));
    let died = 0;
    for (let at = 1; ; at++) {
      const doomed = crashable(installation.deps, at, moment);
      await rounds(installation, clock, doomed.deps)(`${THIRTY_BEFORE}T12:00:00.000Z`).catch(() => undefined);
      if (!doomed.dead) break;
      died++;
    }
    assert.ok(died >= 1);
    for (const gift of giftIds) assert.is(await dueOf(installation, gift), 1);
    await installation.work();
    const processes = [1, 2].map(() => installation.process({ now: () => Date.parse(clock.now) }));
    await installation.until(async () => (await installation.all('ReminderSent')).length === 3);
    await Promise.all(processes.map(async (one) => one.close()));
    installation.process({ now: () => Date.parse(clock.now) });
    await rounds(installation, clock)(`${THIRTY_BEFORE}T13:00:00.000Z`);
    assert.is(sentTo(installation).length, 3);
  });
}

test.run();
