import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type AccountDocument, accountsProjection } from '../../src/projections/accounts.js';
import { importInto, testHash, wholeFile } from '../support/fixtures/importFile.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';

/** All documents of a log, by id. */
function project(events: MemoryEvents): Map<string, AccountDocument> {
  const documents = new Map<string, AccountDocument>();
  for (const event of events.log.filter(({ type }) => accountsProjection.types.includes(type))) {
    accountsProjection
      .documentIds(event)
      .forEach((id, index) => documents.set(id, accountsProjection.evolve(documents.get(id), event, id, index)));
  }
  return documents;
}

function credentials(events: MemoryEvents, id: string): (number | undefined)[] {
  const document = project(events).get(id);
  return [document !== undefined && 'credential' in document ? document.credential : undefined];
}

const test = suite('projections/accounts');

test("every account and reservation has its document, under its stream's name", async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const documents = project(events);
  const ann = documents.get('user-u1');
  assert.is(ann?.entry, 'user');
  if (ann?.entry === 'user')
    assert.equal([ann.username, ann.phone_number, ann.active, ann.credential], ['Ann', '+447700900001', true, 1]);
  const client = documents.get('client-app');
  if (client?.entry === 'client') assert.equal([client.users, client.active, client.credential], [['u1'], true, 1]);
  assert.equal(documents.get('paymentMethod-w1'), {
    reference: 'w1',
    kind: 'wallet',
    users: ['u1', 'u2'],
    customer: null,
    prepaid: true,
    active: true,
    entry: 'paymentMethod',
  });
  assert.equal(documents.get(`username-${testHash('username', 'bob')}`), { entry: 'username', user_id: 'u2' });
  assert.equal(documents.get(`phone-${testHash('phone', '+447700900002')}`), {
    entry: 'phone',
    holders: [{ user_id: 'u2', from: '2026-03-01T10:00:00.000Z' }],
  });
  assert.is(documents.size, 9);
});

test("a user's credential rises with a new password and with being disabled, and with nothing else", () => {
  const events = memoryEvents();
  const user = {
    id: 'u',
    username: 'u',
    password_hash: 'a',
    name: '',
    locale: null,
    phone_number: '+447700900001',
    device_tokens: ['d'],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
  };
  events.given('user-u', { type: 'UserAdded', data: user });
  assert.equal(credentials(events, 'user-u'), [1]);
  events.given('user-u', { type: 'UserChanged', data: { name: 'U', device_tokens: [] } });
  assert.equal(credentials(events, 'user-u'), [1]);
  events.given('user-u', { type: 'UserChanged', data: { password_hash: 'b' } });
  assert.equal(credentials(events, 'user-u'), [2]);
  events.given('user-u', { type: 'UserChanged', data: { active: false } });
  assert.equal(credentials(events, 'user-u'), [3]);
  events.given('user-u', { type: 'UserChanged', data: { active: true } });
  assert.equal(credentials(events, 'user-u'), [3]);
  events.given('user-u', { type: 'UserRetired', data: { reason: 'left' } });
  const retired = project(events).get('user-u');
  assert.equal(retired, {
    ...user,
    name: 'U',
    password_hash: 'b',
    active: false,
    phone_number: null,
    device_tokens: [],
    entry: 'user',
    credential: 4,
  });
  events.given('user-u', { type: 'UserAdded', data: { ...user, password_hash: 'b' } });
  assert.equal(credentials(events, 'user-u'), [4]);
});

test("a client's credential rises with a new secret and with being disabled", () => {
  const events = memoryEvents();
  events.given('client-c', {
    type: 'ClientAdded',
    data: { id: 'c', secret_hash: 'a', name: 'C', active: true, users: null },
  });
  events.given('client-c', { type: 'ClientChanged', data: { name: 'D' } });
  assert.equal(credentials(events, 'client-c'), [1]);
  events.given('client-c', { type: 'ClientChanged', data: { secret_hash: 'b' } });
  assert.equal(credentials(events, 'client-c'), [2]);
  events.given('client-c', { type: 'ClientRetired', data: { reason: '' } });
  assert.equal(project(events).get('client-c'), {
    id: 'c',
    secret_hash: 'b',
    name: 'D',
    active: false,
    users: null,
    entry: 'client',
    credential: 3,
  });
});

test('a retired payment method is inactive', () => {
  const events = memoryEvents();
  events.given('paymentMethod-p', {
    type: 'PaymentMethodAdded',
    data: { reference: 'p', kind: 'card', users: [], customer: null, prepaid: false, active: true },
  });
  events.given('paymentMethod-p', { type: 'PaymentMethodRetired', data: { reason: '' } });
  const document = project(events).get('paymentMethod-p');
  assert.is(document?.entry === 'paymentMethod' && document.active, false);
});

test('frees a name that was given up, and remembers who had a number', () => {
  const events = memoryEvents();
  for (const kind of ['Username', 'Phone']) {
    const stream = `${kind.toLowerCase()}-h`;
    events.given(
      stream,
      { type: `${kind}Taken`, data: { user_id: 'a' } },
      { type: `${kind}GivenUp`, data: { user_id: 'a' } },
    );
  }
  const at = '2026-01-01T00:00:00.000Z';
  assert.equal(project(events).get('username-h'), { entry: 'username', user_id: null });
  assert.equal(project(events).get('phone-h'), { entry: 'phone', holders: [{ user_id: 'a', from: at, to: at }] });
});

test('a change before anything was added, or in a foreign stream, is an error', () => {
  const events = memoryEvents();
  events.given('user-u', { type: 'UserChanged', data: { name: 'x' } });
  assert.throws(() => project(events), 'UserChanged comes before anything was added to user-u');
  const foreign = memoryEvents();
  foreign.given('gift-u', { type: 'UserAdded', data: {} });
  assert.throws(() => project(foreign), 'UserAdded stands in gift-u, where no account is kept');
});

test.run();
