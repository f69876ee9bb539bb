import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { refuseForgeries } from '../../../src/api/webhooks/forgeries.js';
import { SignatureError } from '../../../src/providers/signature.js';

const test = suite('forged signatures');

/** Refuses one from an address, and gives the code it was refused with. */
function refusals(): { from(address: string): Promise<string>; readonly logged: unknown[] } {
  const logged: unknown[] = [];
  const refuse = refuseForgeries({ warn: (details: unknown) => void logged.push(details) });
  return {
    logged,
    async from(address) {
      const error = await refuse({ address, requestId: `of ${address}` }, new SignatureError('not signed')).catch(
        (thrown: unknown) => thrown,
      );
      if (!(error instanceof HttpError)) throw error;
      if (error.code === 'too_many_requests') assert.ok(Number(error.headers['Retry-After']) > 0);
      return error.code;
    },
  };
}

test('answers a hundred forgeries of one address, then 429; other addresses go on', async () => {
  const { from, logged } = refusals();
  for (let n = 0; n < 100; n++) assert.is(await from('192.0.2.1'), 'invalid_signature');
  assert.is(await from('192.0.2.1'), 'too_many_requests');
  assert.is(logged.length, 100, 'what is not looked into is not logged');
  assert.equal(logged[0], { req: 'of 192.0.2.1', cause: 'not signed' });
  for (const other of ['192.0.2.2', 'unknown']) assert.is(await from(other), 'invalid_signature');
});

test('an IPv6 address counts with its /64, which one subscriber has', async () => {
  const { from } = refusals();
  for (let n = 0; n < 100; n++) assert.is(await from(`2001:db8:1:2::${n.toString(16)}`), 'invalid_signature');
  assert.is(await from('2001:db8:1:2:ffff::1'), 'too_many_requests');
  assert.is(await from('2001:db8:1:3::1'), 'invalid_signature');
});

test.run();
