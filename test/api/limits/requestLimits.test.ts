import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { requestLimits } from '../../../src/api/limits/limits.js';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import type { UserDocument } from '../../../src/projections/accounts.js';
import { SharedCounter } from '../../../src/runtime/limits/sharedCounter.js';

const test = suite('limits/requests');

const counter = (name: string, limit: number): SharedCounter =>
  new SharedCounter({ name, limit, windowSeconds: 60 }, () => Date.UTC(2026, 4, 4));

const userOf = (id: string): Principal => ({
  kind: 'user',
  clientId: 'c',
  sessionId: 's',
  user: { id } as UserDocument,
});

function asking({ client, user }: { readonly client: SharedCounter; readonly user: SharedCounter }) {
  const take = requestLimits(
    { client, user, anonymous: undefined },
    (address) => address,
    (_, quota) => new HttpError('too_many_requests', { message: quota.name }),
  );
  return (principal: Principal): void => take({ principal, address: '192.0.2.1', ctx: { state: {} } });
}

test('counts requests without a token for their address, and refuses none with one for it', () => {
  const [client, user, anonymous] = [counter('client', 10), counter('user', 10), counter('address', 2)];
  const take = requestLimits(
    { client, user, anonymous },
    (address) => address,
    (_, quota) => new HttpError('too_many_requests', { message: quota.name }),
  );
  const ask = (principal: Principal, address: string): void => take({ principal, address, ctx: { state: {} } });
  for (let n = 0; n < 2; n++) ask({ kind: 'anonymous' }, '192.0.2.1');
  assert.throws(() => ask({ kind: 'anonymous' }, '192.0.2.1'), { message: 'address' });
  ask({ kind: 'anonymous' }, '192.0.2.2');
  ask(userOf('ann'), '192.0.2.1');
  assert.equal(anonymous.peek('192.0.2.2').left, 1);
});

test('counts for no user what is refused because the client is full', () => {
  const client = counter('client', 2);
  const user = counter('user', 10);
  const ask = asking({ client, user });
  ask(userOf('ann'));
  ask(userOf('ann'));
  for (let n = 0; n < 3; n++) assert.throws(() => ask(userOf('bob')), { message: 'client' });
  assert.equal(user.peek('bob').left, 10);
  assert.equal(user.peek('ann').left, 8);
});

test('counts for no client what is refused because the user is full', () => {
  const client = counter('client', 10);
  const ask = asking({ client, user: counter('user', 2) });
  ask(userOf('ann'));
  ask(userOf('ann'));
  for (let n = 0; n < 3; n++) assert.throws(() => ask(userOf('ann')), { message: 'user' });
  assert.equal(client.peek('c').left, 8);
});

test.run();
