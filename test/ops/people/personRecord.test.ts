import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { phoneSubject } from '../../../src/domain/personalFields.js';
import { findPeople } from '../../../src/ops/people/findPeople.js';
import { type PersonRecord, personRecord } from '../../../src/ops/people/personRecord.js';
import type { WrittenText } from '../../../src/ops/people/supportTexts.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import { AlteredDataError, withFailingFields } from '../../../src/runtime/personal/alteredData.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite('record of a person');

const NUMBER = '+447700900131';
const at = (hour: number): string => `2026-05-04T${String(hour).padStart(2, '0')}:00:00.000Z`;

const giftsOf = ({ parts }: PersonRecord): unknown[] =>
  parts
    .filter(({ part }) => part === 'gifts')
    .flatMap(({ records }) => records as readonly { transaction_id: string }[])
    .map(({ transaction_id }) => transaction_id);

test('shows gifts to a number to the user who held it then, and to no other', async () => {
  const events = memoryEvents();
  const subjects = memorySubjects();
  const [phone_id = ''] = await subjects.ids([phoneSubject(NUMBER)]);
  const append = async (hour: number, stream: string, type: string, data: object): Promise<void> => {
    await events.append(stream, [eventOf(type, data, at(hour))], 'any');
  };
  const sent = async (hour: number, id: string): Promise<void> =>
    append(hour, `transaction-${id}`, 'GiftsPurchased', {
      transaction_id: id,
      seed: '0'.repeat(64),
      buyer_id: 'cleo',
      receivers: [{ phone_id }],
      message: '',
    });
  for (const id of ['eve', 'ann'])
    await append(0, `user-${id}`, 'UserAdded', { id, username: id, name: id, phone_number: NUMBER });
  await append(1, `phone-${phone_id}`, 'PhoneTaken', { user_id: 'eve' });
  await sent(2, 'to-eve');
  await append(3, `phone-${phone_id}`, 'PhoneGivenUp', { user_id: 'eve' });
  await append(4, `phone-${phone_id}`, 'PhoneTaken', { user_id: 'ann' });
  await sent(5, 'to-ann');
  const [log, records] = [{ events, subjects }, memoryRecords(Date.now)];
  assert.equal(giftsOf(await personRecord(log, { kind: 'user', userId: 'eve' }, records)), ['to-eve']);
  assert.equal(giftsOf(await personRecord(log, { kind: 'user', userId: 'ann' }, records)), ['to-ann']);
  await append(6, `phone-${phone_id}`, 'PhoneGivenUp', { user_id: 'ann' });
  await sent(7, 'to-number');
  assert.equal(giftsOf(await personRecord(log, { kind: 'number', phoneId: phone_id }, records)), ['to-number']);
  // The number is erased for whom it went to: its id is all that is left of it.
  const without = { events, subjects: { ...subjects, find: async () => [undefined] } };
  assert.equal(giftsOf(await personRecord(without, { kind: 'user', userId: 'eve' }, records)), ['to-eve']);
});

test('shows how long a shared card stays, and of an erased person not whose it is by now', async () => {
  const events = memoryEvents();
  const append = async (stream: string, type: string, data: object): Promise<void> => {
    await events.append(stream, [eventOf(type, data, at(1))], 'any');
  };
  for (const id of ['eve', 'ann']) await append(`user-${id}`, 'UserAdded', { id, username: id, name: id });
  const card = { users: ['eve', 'ann'], kind: 'card', customer: 'cus_both', active: true, prepaid: false };
  await append('paymentMethod-shared', 'PaymentMethodAdded', card);
  const [log, records] = [{ events, subjects: memorySubjects() }, memoryRecords(Date.now)];
  const methodsOf = async (userId: string): Promise<object> => {
    const { parts } = await personRecord(log, { kind: 'user', userId }, records);
    const found = parts.find(({ part }) => part === 'payment methods');
    return { until: found?.until, records: found?.records };
  };
  const until = 'until the last person who may use it is erased';
  const shared = { reference: 'shared', kind: 'card', active: true };
  assert.equal(await methodsOf('eve'), { until, records: [{ ...shared, customer: 'cus_both' }] });
  await append('user-eve', 'PersonErased', { erasure_id: 'e', purchases: 0, reason: 'asked for it' });
  assert.equal(await methodsOf('eve'), { until, records: [shared] });
  assert.equal(await methodsOf('ann'), { until, records: [{ ...shared, customer: 'cus_both' }] });
});

test('shows what support wrote about a person and their gifts while they had them', async () => {
  const events = memoryEvents();
  const subjects = memorySubjects();
  const append = async (stream: string, type: string, data: object): Promise<void> => {
    await events.append(stream, [eventOf(type, data, at(1))], 'any');
  };
  const seed = '5e'.repeat(32);
  const [first = '', second = ''] = deriveGiftIds(seed, 2).map(({ gift_id }) => gift_id);
  for (const id of ['eve', 'ann']) await append(`user-${id}`, 'UserAdded', { id, username: id, name: id });
  const receivers = [{ user_id: 'eve' }, { user_id: 'bob' }];
  const bought = { transaction_id: 't', seed, buyer_id: 'ann', receivers, message: '' };
  await append('transaction-t', 'GiftsPurchased', bought);
  const work = { transaction_id: 't', step: 'notify', times: 1 };
  await append(`gift-${first}`, 'GiftBlocked', { cause: 'support:x', ticket: 'T-1', reason: 'eve and ann' });
  await append(`gift-${second}`, 'GiftBlocked', { cause: 'support', reason: 'ann 1' });
  await append(`notification-${second}`, 'NotificationRequested', { transaction_id: 't', reason: 'ann 2' });
  await append('transaction-t', 'RefundRequested', { refund_id: 'r', gift_ids: [second], reason: 'ann 3' });
  await append('parked-notification', 'WorkRetried', { ...work, entity: first, reason: 'eve and ann' });
  await append('parked-refund', 'WorkDiscarded', { ...work, entity: 'r', reason: 'ann 4' });
  const call = { what: 'GET /ops/people/:personId', personal: true, count: 1 };
  await append('access-1', 'RecordsShown', { ...call, asked: { personId: 'eve' }, reason: 'eve' });
  await append('access-1', 'RecordsShown', { ...call, asked: { parkedId: 'r' }, reason: 'ann 5' });
  await append('access-1', 'RecordsShown', { ...call, asked: { found: ['bob', 'eve'] }, reason: 'eve' });
  await append('access-1', 'RecordsShown', { ...call, asked: { found: ['bob'] }, reason: 'bob' });
  await append('access-1', 'RecordsShown', { ...call, asked: { personId: 'ann' }, reason: null });
  await append(`gift-${first}`, 'GiftReassigned', {
    transaction_id: 't',
    receiver: { user_id: 'bob' },
    reason: 'eve and ann',
  });
  await append(`gift-${first}`, 'GiftUnblocked', { cause: 'support:x', ticket: '', reason: 'ann 6' });
  await append('user-eve', 'UserRetired', { reason: 'eve' });
  const [log, records] = [{ events, subjects }, memoryRecords(Date.now)];
  const texts = async (userId: string): Promise<readonly Partial<WrittenText>[]> => {
    const { parts } = await personRecord(log, { kind: 'user', userId }, records);
    return (parts.find(({ part }) => part === 'texts of support')?.records ?? []) as WrittenText[];
  };
  const both = 'eve and ann';
  const ofEve = await texts('eve');
  assert.equal(
    ofEve.map(({ reason }) => reason),
    [both, both, 'eve', 'eve', both, 'eve'],
  );
  assert.equal([ofEve[0]?.ticket, ofEve[0]?.type, ofEve[2]?.what], ['T-1', 'GiftBlocked', 'GET /ops/people/:personId']);
  assert.equal(
    (await texts('ann')).map(({ reason }) => reason),
    [both, 'ann 1', 'ann 2', 'ann 3', both, 'ann 4', 'ann 5', both, 'ann 6'],
  );
});

test('finds and shows all others where fields of a user and of a payment method were altered', async () => {
  const stored = memoryEvents();
  for (const [stream, type, data] of [
    ['user-ann', 'UserAdded', { id: 'ann', username: 'ann', name: 'Ann Lee', phone_number: null }],
    ['user-bea', 'UserAdded', { id: 'bea', username: 'bea', name: 'Bea Lee', phone_number: null }],
    ['paymentMethod-a', 'PaymentMethodAdded', { reference: 'a', kind: 'card', users: ['ann'], customer: 'cus_a' }],
    ['paymentMethod-b', 'PaymentMethodAdded', { reference: 'b', kind: 'card', users: ['bea'], customer: 'cus_b' }],
    ['paymentMethod-b', 'PaymentMethodChanged', { customer: 'cus_c' }],
  ] as const)
    await stored.append(stream, [eventOf(type, data, at(1))], 'any');
  const altered = (event: RecordedEvent): RecordedEvent =>
    event.stream !== 'user-bea' && event.stream !== 'paymentMethod-b'
      ? event
      : {
          ...event,
          data: withFailingFields(
            event.data,
            event.type === 'UserAdded' ? ['name'] : ['customer'],
            new AlteredDataError(event.stream, undefined),
          ),
        };
  const events = {
    read: async (...asked: Parameters<typeof stored.read>) => (await stored.read(...asked)).map(altered),
    async *readAll(...asked: Parameters<typeof stored.readAll>) {
      for await (const batch of stored.readAll(...asked)) yield { ...batch, events: batch.events.map(altered) };
    },
  };
  const [log, records] = [{ events, subjects: memorySubjects() }, memoryRecords(Date.now)];
  assert.equal(await findPeople(log, 'name', 'lee'), { people: [{ person: 'ann', kind: 'user' }], has_more: false });
  const { parts } = await personRecord(log, { kind: 'user', userId: 'ann' }, records);
  assert.match(JSON.stringify(parts), 'cus_a');
  assert.instance(await rejectionOf(personRecord(log, { kind: 'user', userId: 'bea' }, records)), AlteredDataError);
});

test.run();
