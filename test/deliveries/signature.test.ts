/** Signatures as the public library of Standard Webhooks checks them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import { signedHeaders } from '../../src/deliveries/attempt.js';
import { verify } from '../support/service/receiver.js';

const test = suite('deliveries/signature');
const secret = (bytes = 32): string => `whsec_${randomBytes(bytes).toString('base64')}`;
const now = (): number => Math.floor(Date.now() / 1_000);
const BODY = '{"id":"1","type":"gift.issued","data":{"gift_id":"ü"}}';

test('holds for the library with secrets of 24 to 64 bytes', () => {
  for (const bytes of [24, 32, 64]) {
    const own = secret(bytes);
    verify(own, { text: BODY, headers: signedHeaders([own], { id: '1', timestamp: now(), body: BODY }) });
  }
});

test('holds for both secrets while one replaces the other', () => {
  const [next, before] = [secret(), secret()];
  const headers = signedHeaders([next, before], { id: '1', timestamp: now(), body: BODY });
  verify(next, { text: BODY, headers });
  verify(before, { text: BODY, headers });
  assert.equal(headers['webhook-signature']?.split(' ').length, 2);
});

test('does not hold for another secret, body, id or time', () => {
  const own = secret();
  const headers = signedHeaders([own], { id: '1', timestamp: now(), body: BODY });
  assert.throws(() => verify(secret(), { text: BODY, headers }));
  assert.throws(() => verify(own, { text: `${BODY} `, headers }));
  assert.throws(() => verify(own, { text: BODY, headers: { ...headers, 'webhook-id': '2' } }));
  assert.throws(() => verify(own, { text: BODY, headers: { ...headers, 'webhook-timestamp': String(now() + 1) } }));
});

test('refuses a secret without its prefix', () => {
  assert.throws(() => signedHeaders([randomBytes(32).toString('base64')], { id: '1', timestamp: 1, body: BODY }));
});

test.run();
