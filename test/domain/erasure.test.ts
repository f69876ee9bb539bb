import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { evolvePaymentMethod, evolveUser, isStaff, type PaymentMethod, type User } from '../../src/domain/account.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import {
  erasedAggregate,
  type ErasureEvent,
  erasureRequestAggregate,
  type Person,
  personId,
  personOf,
  personOfStream,
  personStream,
} from '../../src/domain/erasure.js';
import { given, GIVEN_AT } from '../support/assertions/givenWhenThen.js';

const test = suite('domain/erasure');

const DUE = '2026-03-08T09:00:00.000Z';
const requested = (erasure_id = 'e1'): ErasureEvent => ({
  type: 'ErasureRequested',
  data: { erasure_id, reason: 'the person wrote', due_at: DUE },
});
const started: ErasureEvent = { type: 'ErasureStarted', data: { erasure_id: 'e1' } };
const withdrawn: ErasureEvent = { type: 'ErasureWithdrawn', data: { erasure_id: 'e1', reason: 'by mistake' } };
const erased: ErasureEvent = { type: 'PersonErased', data: { erasure_id: 'e1', purchases: 0, reason: '' } };
const added: DomainEvent = { type: 'UserAdded', data: {} };
const changed: DomainEvent = { type: 'UserChanged', data: {} };

const requestAfter = (...events: ErasureEvent[]): unknown => given(erasureRequestAggregate, ...events).state;
const isErased = (...events: DomainEvent[]): boolean => given(erasedAggregate, ...events).state;

test('a request is started or withdrawn, and keeps its id and times', () => {
  const first = { id: 'e1', at: GIVEN_AT, due_at: DUE };
  assert.equal(requestAfter(requested()), { status: 'requested', ...first });
  assert.equal(requestAfter(requested(), started), { status: 'started', ...first });
  assert.equal(requestAfter(requested(), withdrawn), { status: 'withdrawn', ...first });
});

test('the latest request counts, and none is left once the person is erased', () => {
  const second = { status: 'requested', id: 'e2', at: GIVEN_AT, due_at: DUE };
  assert.equal(requestAfter(requested(), withdrawn, requested('e2')), second);
  assert.equal(requestAfter(requested(), started, erased), { status: 'none' });
  assert.equal(requestAfter(requested(), started, erased, requested('e2')), second);
});

test('nothing is started or withdrawn without a request', () => {
  for (const event of [started, withdrawn]) assert.equal(requestAfter(event), { status: 'none' });
});

test('a person stays erased until an import adds them again', () => {
  assert.is(isErased(), false);
  assert.is(isErased(added, changed), false);
  assert.is(isErased(added, erased), true);
  assert.is(isErased(added, erased, changed), true);
  assert.is(isErased(added, erased, added), false);
  assert.is(isErased(added, erased, added, changed), false);
});

test('a person is named by id and by stream, a number apart from users', () => {
  const people: readonly (readonly [Person, id: string, stream: string])[] = [
    [{ kind: 'user', userId: 'ann' }, 'ann', 'user-ann'],
    [{ kind: 'user', userId: 'a-phone:' }, 'a-phone:', 'user-a-phone:'],
    [{ kind: 'number', phoneId: 'h-1' }, 'phone:h-1', 'phone-h-1'],
  ];
  for (const [person, id, stream] of people) {
    assert.is(personId(person), id);
    assert.equal(personOf(id), person);
    assert.is(personStream(person), stream);
    assert.equal(personOfStream(stream), person);
  }
});

const ann: User = {
  id: 'ann',
  username: 'ann',
  password_hash: 'h',
  name: 'Ann',
  locale: 'en-GB',
  phone_number: '+447700900123',
  device_tokens: ['d'],
  active: true,
  roles: [],
  merchant_id: 'coffee',
  permissions: ['redeem'],
};

test('an erased user is inactive and has nothing personal; merchant and permissions stay', () => {
  const nothing = { username: '', password_hash: '', name: '', phone_number: null, device_tokens: [], active: false };
  assert.equal(evolveUser({ status: 'live', value: ann }, erased), { status: 'erased', value: { ...ann, ...nothing } });
  assert.equal(evolveUser({ status: 'none' }, erased), { status: 'none' });
});

test('an erased payment method is inactive and has no customer', () => {
  const card: PaymentMethod = {
    reference: 'pm',
    kind: 'card',
    users: ['ann'],
    customer: 'cus_1',
    prepaid: false,
    active: true,
  };
  const gone: DomainEvent = { type: 'PaymentMethodErased', data: { erasure_id: 'e1' } };
  const live = { status: 'live', value: card } as const;
  assert.equal(evolvePaymentMethod(live, gone), {
    status: 'erased',
    value: { ...card, customer: null, active: false },
  });
  assert.equal(evolvePaymentMethod({ status: 'none' }, gone), { status: 'none' });
  assert.equal(evolvePaymentMethod(live, { type: 'PaymentMethodChanged', data: { prepaid: true } }), {
    status: 'live',
    value: { ...card, prepaid: true },
  });
});

test('a user with a role is staff', () => {
  assert.is(isStaff(ann), false);
  assert.is(isStaff({ roles: ['auditor'] }), true);
});

test.run();
