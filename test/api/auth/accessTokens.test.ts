import { createSecretKey } from 'node:crypto';
import { SignJWT, decodeJwt, decodeProtectedHeader } from 'jose';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessTokens } from '../../../src/api/auth/accessTokens.js';
import { TOKEN_KEY, clockAt } from './support.js';

const test = suite('access tokens');
const OTHER_KEY = 'another token key that has more than thirty-two bytes';
const SESSION = 'abcdefghijklmnopqrstuv';
const clock = clockAt();
const seconds = Math.floor(clock.ms / 1000);
const claims = { sessionId: SESSION, pair: 3, userId: 'ada', expiresAt: seconds + 900 };

test('a token says what was signed', async () => {
  const tokens = accessTokens([TOKEN_KEY], clock.now);
  assert.equal(await tokens.verify(await tokens.sign(claims)), claims);
  const { userId: _, ...client } = claims;
  assert.equal(await tokens.verify(await tokens.sign(client)), client);
});

test('it names its session and user, and nothing more', async () => {
  const token = await accessTokens([TOKEN_KEY], clock.now).sign(claims);
  assert.equal(decodeJwt(token), { sid: `${SESSION}.3`, sub: 'ada', iat: seconds, exp: seconds + 900 });
  assert.equal(Object.keys(decodeProtectedHeader(token)).sort(), ['alg', 'kid', 'typ']);
});

test('the first key signs, all verify, one that is gone no longer does', async () => {
  const old = await accessTokens([OTHER_KEY], clock.now).sign(claims);
  const both = accessTokens([TOKEN_KEY, OTHER_KEY], clock.now);
  assert.equal(await both.verify(old), claims);
  const young = await both.sign(claims);
  assert.equal(await accessTokens([TOKEN_KEY], clock.now).verify(young), claims);
  assert.is(await accessTokens([OTHER_KEY], clock.now).verify(young), undefined);
  assert.is(await accessTokens([TOKEN_KEY], clock.now).verify(old), undefined);
});

test('every key needs 32 bytes, and there must be one', () => {
  accessTokens(['é'.repeat(16)], clock.now);
  assert.throws(() => accessTokens([TOKEN_KEY, 'x'.repeat(31)], clock.now), /less than 32 bytes/);
  assert.throws(() => accessTokens([], clock.now), /no token key/);
});

test('a signature that was checked is remembered until the token expires, no longer', async () => {
  const moving = clockAt();
  const tokens = accessTokens([TOKEN_KEY], moving.now);
  const token = await tokens.sign(claims);
  assert.is(tokens.remembered(token), undefined);
  await tokens.verify(token);
  assert.equal(tokens.remembered(token), claims);
  assert.is(await tokens.verify(token), tokens.remembered(token));
  moving.ms += 899_999;
  assert.equal(tokens.remembered(token), claims);
  moving.ms += 1;
  assert.is(tokens.remembered(token), undefined);
  assert.is(await tokens.verify(token), undefined);
});

test('whatever is not ours is nothing', async () => {
  const tokens = accessTokens([TOKEN_KEY], clock.now);
  const token = await tokens.sign(claims);
  const kid = String(decodeProtectedHeader(token).kid);
  const key = createSecretKey(Buffer.from(TOKEN_KEY));
  const jwt = (payload: Record<string, unknown>, header: Record<string, string> = {}): Promise<string> =>
    new SignJWT(payload).setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid, ...header }).sign(key);
  const exp = claims.expiresAt;
  const [head = '', body = '', signature = ''] = token.split('.');
  const unsigned = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt', kid })).toString('base64url');
  assert.ok(await tokens.verify(await jwt({ sid: `${SESSION}.0`, exp })));
  for (const [what, bad] of Object.entries({
    empty: '',
    garbage: 'eyJ.x.y',
    'changed payload': [
      head,
      Buffer.from(JSON.stringify({ sid: `${SESSION}.3`, sub: 'bob', exp })).toString('base64url'),
      signature,
    ].join('.'),
    'no signature': `${head}.${body}.`,
    'alg none': `${unsigned}.${body}.`,
    'another algorithm': await jwt({ sid: `${SESSION}.0`, exp }, { alg: 'HS512' }),
    'another type': await jwt({ sid: `${SESSION}.0`, exp }, { typ: 'JWT' }),
    'another key id': await jwt({ sid: `${SESSION}.0`, exp }, { kid: 'x' }),
    'no session': await jwt({ sub: 'ada', exp }),
    'no expiry': await jwt({ sid: `${SESSION}.0` }),
    'no such session id': await jwt({ sid: 'x', exp }),
    'changed and long': `${token}${'x'.repeat(3_000)}`,
    'longer than any of ours': await jwt({ sid: `${SESSION}.0`, exp, sub: 'x'.repeat(3_000) }),
    'no key id': await new SignJWT({ sid: `${SESSION}.0`, exp })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
      .sign(key),
    expired: await jwt({ sid: `${SESSION}.0`, exp: seconds }),
  })) {
    assert.is(await tokens.verify(bad), undefined, what);
  }
});

test.run();
