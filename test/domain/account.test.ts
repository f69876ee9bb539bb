import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type AccountEvent,
  type PhoneHolder,
  type User,
  accountStream,
  evolveUser,
  giveUpReservation,
  holderOf,
  ownerByPhone,
  phoneStream,
  reservationAggregate,
  takeReservation,
  usernameStream,
} from '../../src/domain/account.js';
import { type Happened, fold } from '../../src/domain/decider.js';

const at = (day: number): string => `2026-01-0${day}T00:00:00.000Z`;
const taken = (user_id: string, day: number): Happened<AccountEvent> => ({
  type: 'PhoneTaken',
  data: { user_id },
  at: at(day),
});
const abandoned = (user_id: string, day: number): Happened<AccountEvent> => ({
  type: 'PhoneGivenUp',
  data: { user_id },
  at: at(day),
});
const test = suite('domain/account');

test('streams are named by kind', () => {
  assert.is(accountStream('paymentMethod', 'pm_1'), 'paymentMethod-pm_1');
  assert.is(phoneStream('h'), 'phone-h');
  assert.is(usernameStream('h'), 'username-h');
});

test('records each holder of a reservation with its time', () => {
  const holders = fold(reservationAggregate, [taken('a', 1), abandoned('a', 3), taken('b', 5)]);
  assert.equal(holders, [
    { user_id: 'a', from: at(1), to: at(3) },
    { user_id: 'b', from: at(5) },
  ]);
  assert.is(holderOf(holders), 'b');
  assert.is(holderOf(holders.slice(0, 1)), undefined);
  assert.is(holderOf([]), undefined);
});

test('ends an earlier holder’s time when they gave it up, whatever later ones do', () => {
  const holders = fold(reservationAggregate, [taken('a', 1), abandoned('a', 2), taken('b', 3), abandoned('b', 5)]);
  assert.equal(holders, [
    { user_id: 'a', from: at(1), to: at(2) },
    { user_id: 'b', from: at(3), to: at(5) },
  ]);
  assert.is(ownerByPhone(holders, at(4)), 'b');
});

test('leaves a reservation as it is after other events', () => {
  const holders = fold(reservationAggregate, [taken('a', 1)]);
  assert.is(reservationAggregate.evolve(holders, { type: 'UserRetired', data: { reason: '' }, at: at(2) }), holders);
});

test('lets only the owner take and give up a username, once', () => {
  assert.equal(takeReservation('username', [], 'a'), [{ type: 'UsernameTaken', data: { user_id: 'a' } }]);
  const holders = fold(reservationAggregate, [{ type: 'UsernameTaken', data: { user_id: 'a' }, at: at(1) }]);
  assert.equal(takeReservation('username', holders, 'a'), []);
  assert.equal(giveUpReservation('username', holders, 'b'), []);
  assert.equal(giveUpReservation('username', holders, 'a'), [{ type: 'UsernameGivenUp', data: { user_id: 'a' } }]);
  assert.equal(takeReservation('phone', [], 'a'), [{ type: 'PhoneTaken', data: { user_id: 'a' } }]);
  assert.equal(giveUpReservation('phone', holders, 'a'), [{ type: 'PhoneGivenUp', data: { user_id: 'a' } }]);
  assert.is(
    holderOf(
      fold(reservationAggregate, [
        { type: 'UsernameTaken', data: { user_id: 'a' }, at: at(1) },
        { type: 'UsernameGivenUp', data: { user_id: 'a' }, at: at(2) },
      ]),
    ),
    undefined,
  );
});

test('gives what was sent to a number to its holder then, else to the first one later', () => {
  const holders: PhoneHolder[] = [
    { user_id: 'a', from: at(2), to: at(4) },
    { user_id: 'b', from: at(6) },
  ];
  assert.is(ownerByPhone(holders, at(1)), 'a');
  assert.is(ownerByPhone(holders, at(3)), 'a');
  assert.is(ownerByPhone(holders, at(4)), 'b');
  assert.is(ownerByPhone(holders, at(7)), 'b');
  assert.is(ownerByPhone([], at(1)), undefined);
  assert.is(ownerByPhone(holders.slice(0, 1), at(5)), undefined);
});

test('a retired user is inactive and has no number and no devices', () => {
  const user: User = {
    id: 'u',
    username: 'ann',
    password_hash: 'h',
    name: 'Ann',
    locale: null,
    phone_number: '+447700900123',
    device_tokens: ['d'],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
  };
  const live = evolveUser({ status: 'none' }, { type: 'UserAdded', data: user });
  assert.equal(live, { status: 'live', value: user });
  assert.equal(evolveUser(live, { type: 'UserRetired', data: { reason: '' } }), {
    status: 'retired',
    value: { ...user, active: false, phone_number: null, device_tokens: [] },
  });
});

test.run();
