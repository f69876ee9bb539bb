import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../src/api/errors.js';
import { forgeryCount } from '../../src/api/forgeries.js';

const test = suite('forged signatures');

const refused = (error: unknown): boolean => error instanceof HttpError && error.code === 'too_many_requests' && Number(error.headers['Retry-After']) > 0;

async function rejects(promise: Promise<void>): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(refused(error), String(error));
}

test('a hundred are answered to one address, and the next is told to wait; another address has its own', async () => {
  const count = forgeryCount();
  for (let n = 0; n < 100; n++) await count('192.0.2.1');
  await rejects(count('192.0.2.1'));
  await count('192.0.2.2');
  await count('unknown');
});

test('an IPv6 address counts with its /64, which one subscriber has', async () => {
  const count = forgeryCount();
  for (let n = 0; n < 100; n++) await count(`2001:db8:1:2::${n.toString(16)}`);
  await rejects(count('2001:db8:1:2:ffff::1'));
  await count('2001:db8:1:3::1');
});

test.run();
