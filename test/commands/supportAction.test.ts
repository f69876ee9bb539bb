import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import { extendGift } from '../../src/commands/extendGift.js';
import { reassignGift, type NewReceiver, type ReassignDeps } from '../../src/commands/reassignGift.js';
import { resendGift } from '../../src/commands/resendGift.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { notificationStream } from '../../src/domain/notification.js';
import { phoneSubject } from '../../src/domain/personalFields.js';
import type { Receiver } from '../../src/domain/gift/events.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { giftIssued } from '../support/fixtures/giftEvents.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

const test = suite('extending, reassigning and resending gifts');
const NOW = '2026-05-04T12:00:00.000Z';
const context = (commandId: string = randomUUID()): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'sue' },
  now: NOW,
});
const SEED = 'ab'.repeat(32);
const [GIFT = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
const NUMBER = '+447700900123';
const subjects = memorySubjects();
const [PHONE = ''] = await subjects.ids([phoneSubject(NUMBER)]);

const user = (id: string, more: object = {}): object => ({ id, active: true, roles: [], username: id, ...more });

/** A log and its read models; the accounts' one lacks whatever is `behind`. */
function installation(
  issued: DomainEvent | { readonly receiver: Receiver },
  accounts: readonly object[] = [user('bob'), user('cat'), user('sue', { roles: ['support'] })],
  behind = false,
): { readonly deps: ReassignDeps; readonly events: MemoryEvents } {
  const events = memoryEvents();
  for (const account of accounts as readonly { readonly id: string }[])
    events.given(`user-${account.id}`, { type: 'UserAdded', data: account });
  events.given(
    'transaction-t',
    {
      type: 'GiftsPurchased',
      data: {
        transaction_id: 't',
        seed: SEED,
        buyer_id: 'ann',
        product_id: 'latte',
        brand_id: 'bean',
        sale_price: 350,
        expires_on: '2026-06-30',
        receivers: ['receiver' in issued ? issued.receiver : {}],
      },
    },
    { type: 'PaymentCharged', data: { amount: 350, provider: 'p', charge_id: 'ch_1' } },
  );
  if ('type' in issued) events.given(giftStream(GIFT), issued);
  const shown = accounts.map((account) => ({ entry: 'user', ...account }) as unknown as { readonly id: string });
  const deps = {
    events,
    subjects,
    gifts: { get: async (id: string) => (id === GIFT ? { transaction_id: 't', index: 0 } : undefined) },
    accounts: { get: async (id: string) => (behind ? undefined : shown.find((one) => `user-${one.id}` === id)) },
  } as unknown as ReassignDeps;
  return { deps, events };
}
const issued = giftIssued();
const told: readonly DomainEvent[] = ['NotificationStarted', 'NotificationSent'].map((type) => ({
  type,
  data: { attempt: 1, message_id: 'm' },
}));
/** A gift whose first notification has been sent. */
function notified(...of: Parameters<typeof installation>): ReturnType<typeof installation> {
  const found = installation(...of);
  const issue = found.events.log.find(({ type }) => type === 'GiftIssued') as RecordedEvent;
  for (const { type, data } of told)
    found.events.given(notificationStream(GIFT), { type, data: { ...data, asked_by: issue.id } } as DomainEvent);
  return found;
}
const reassign = async (deps: ReassignDeps, to: NewReceiver, commandId?: string): Promise<unknown[]> =>
  (await reassignGift(deps, GIFT, context(commandId), to, 'lost')).own.map(({ data }) => data);

test('extends a gift, by its voucher’s segment as the log has it', async () => {
  const { deps, events } = installation(issued);
  events.given('segment-till', { type: 'SegmentAdded', data: { id: 'till', expiry: 300 } });
  const extend = async (day: string): Promise<unknown[]> =>
    (await extendGift(deps, GIFT, context(), day, 'late')).own.map(({ data }) => data);
  assert.deepEqual(await extend('2026-07-31'), [
    { expires_on: '2026-07-31', voucher_expires_at: null, reason: 'late' },
  ]);
  assert.deepEqual(await extend('2026-07-31'), []);
  events.given(giftStream(GIFT), {
    type: 'VoucherAssigned',
    data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 'till', expires_at: '2026-07-31T23:59:59.999Z' },
  });
  assert.deepEqual(await extend('2027-01-31'), [
    { expires_on: '2027-01-31', voucher_expires_at: '2026-10-28T00:00:00.000Z', reason: 'late' },
  ]);
});

test('a voucher of a segment that the log lacks lasts as long as before', async () => {
  const { deps, events } = installation(issued);
  events.given(giftStream(GIFT), {
    type: 'VoucherAssigned',
    data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 'gone', expires_at: '2026-06-30T23:59:59.999Z' },
  });
  const { own } = await extendGift(deps, GIFT, context(), '2027-01-31', 'late');
  assert.deepEqual(own[0]?.data, {
    expires_on: '2027-01-31',
    voucher_expires_at: '2026-06-30T23:59:59.999Z',
    reason: 'late',
  });
});

test('reassigns a gift to a user or a number once, and to nobody else', async () => {
  const { deps, events } = notified(issued);
  assert.deepEqual(await reassign(deps, { user_id: 'bob' }), [], 'already bob’s');
  const given = { transaction_id: 't', reason: 'lost' };
  const first = await reassign(deps, { user_id: 'cat' }, 'k');
  assert.deepEqual(first, [{ ...given, receiver: { user_id: 'cat' } }]);
  assert.deepEqual(await reassign(deps, { user_id: 'cat' }, 'k'), first);
  assert.equal(events.log.filter(({ type }) => type === 'GiftReassigned').length, 1);
  const by = notified(issued);
  assert.deepEqual(await reassign(by.deps, { phone_number: '+44 7700 900123' }), [
    { ...given, receiver: { phone_id: PHONE } },
  ]);
});

test('refuses receivers that are missing, inactive, of staff or no number', async () => {
  const accounts = [user('bob'), user('off', { active: false }), user('sue', { roles: ['support'] })];
  for (const behind of [false, true]) {
    const { deps, events } = notified(issued, accounts, behind);
    const length = events.log.length;
    for (const [to, code] of [
      [{ user_id: 'nobody' }, 'receiver_not_found'],
      [{ user_id: 'off' }, 'receiver_not_found'],
      [{ user_id: 'sue' }, 'staff_receives_no_gifts'],
      [{ phone_number: '12' }, 'invalid_phone_number'],
      [{}, 'invalid_phone_number'],
    ] as const)
      await assert.rejects(reassign(deps, to), refusal(code), JSON.stringify(to));
    assert.equal(events.log.length, length);
  }
});

test('takes an account from the log where the read model shows it inactive or not at all', async () => {
  const { deps } = notified(issued, undefined, true);
  assert.equal((await reassign(deps, { user_id: 'cat' })).length, 1);
  const { deps: late } = notified(issued);
  const accounts = { get: async () => ({ entry: 'user', id: 'cat', active: false, roles: [] }) };
  assert.equal((await reassign({ ...late, accounts } as unknown as ReassignDeps, { user_id: 'cat' })).length, 1);
});

test('reads no account in the log that the read model shows as it must be', async () => {
  for (const [to, holder] of [
    [{ user_id: 'cat' }, undefined],
    [{ phone_number: NUMBER }, undefined],
    [{ phone_number: NUMBER }, 'bob'],
  ] as const) {
    const { deps, events } = notified(issued);
    if (holder !== undefined) events.given(`phone-${PHONE}`, { type: 'PhoneTaken', data: { user_id: holder } });
    const users: string[] = [];
    const read: MemoryEvents['read'] = async (stream, options) => {
      if (stream.startsWith('user-')) users.push(stream);
      return events.read(stream, options);
    };
    assert.equal((await reassign({ ...deps, events: { ...events, read } }, to)).length, 1);
    assert.deepEqual(users, []);
  }
});

test('refuses a number of staff, and takes one that they have given up', async () => {
  const { deps, events } = notified(issued);
  events.given(`phone-${PHONE}`, { type: 'PhoneTaken', data: { user_id: 'sue' } });
  await assert.rejects(reassign(deps, { phone_number: NUMBER }), refusal('staff_receives_no_gifts'));
  events.given(`phone-${PHONE}`, { type: 'PhoneGivenUp', data: { user_id: 'sue' } });
  assert.equal((await reassign(deps, { phone_number: NUMBER })).length, 1);
  const other = notified(issued);
  other.events.given(`phone-${PHONE}`, { type: 'PhoneTaken', data: { user_id: 'cat' } });
  assert.equal((await reassign(other.deps, { phone_number: NUMBER })).length, 1);
});

test('does not take a gift from a receiver who is being notified', async () => {
  const { deps } = installation(issued);
  await assert.rejects(reassign(deps, { user_id: 'cat' }), refusal('notification_pending'));
  assert.deepEqual(await reassign(deps, { user_id: 'bob' }), [], 'nothing to take');
  const unissued = installation({ receiver: { user_id: 'bob' } });
  await assert.rejects(reassign(unissued.deps, { user_id: 'cat' }), refusal('notification_pending'));
  const shared = installation({ receiver: {} });
  assert.equal((await reassign(shared.deps, { user_id: 'cat' })).length, 2, 'issued and reassigned');
});

test('requests one more notification once earlier ones are settled', async () => {
  const { deps, events } = notified(issued);
  const resend = (commandId?: string): ReturnType<typeof resendGift> =>
    resendGift(deps, GIFT, context(commandId), 'not seen');
  const { own } = await resend('k');
  assert.deepEqual(own[0]?.data, { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'not seen' });
  assert.equal((await resend('k')).replayed, true);
  await assert.rejects(resend(), refusal('notification_pending'));
  assert.equal(events.log.filter(({ type }) => type === 'NotificationRequested').length, 1);
});

test('resends nothing that has no receiver, is not issued, held back or unusable', async () => {
  const resend = ({ deps }: ReturnType<typeof installation>): Promise<unknown> =>
    resendGift(deps, GIFT, context(), 'not seen');
  await assert.rejects(resend(installation(giftIssued({ receiver: {} }))), refusal('gift_has_no_receiver'));
  await assert.rejects(resend(installation({ receiver: { user_id: 'bob' } })), refusal('notification_pending'));
  await assert.rejects(resend(installation(giftIssued({ scheduled: true }))), refusal('notification_pending'));
  await assert.rejects(resend(notified(giftIssued({ expires_on: '2026-05-03' }))), refusal('gift_expired'));
  const { deps } = installation(issued);
  await assert.rejects(resendGift(deps, 'ff'.repeat(9), context(), 'x'), refusal('gift_not_found'));
});

test('resends a gift fifty times', async () => {
  const { deps, events } = notified(issued);
  const settle = ({ id }: RecordedEvent, attempt: number): void => {
    for (const { type, data } of told)
      events.given(notificationStream(GIFT), { type, data: { ...data, attempt, asked_by: id } } as DomainEvent);
  };
  for (let n = 0; n < 50; n++) {
    const { own } = await resendGift(deps, GIFT, context(), 'not seen');
    settle(own[0] as RecordedEvent, n + 2);
  }
  await assert.rejects(resendGift(deps, GIFT, context(), 'not seen'), refusal('supported_too_often'));
});

test.run();
