import { createHash } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newRefreshToken, readRefreshToken } from '../../../src/api/auth/sessions.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { hash } from './support.js';

const test = suite('refresh tokens');
const SESSION = 'abcdefghijklmnopqrstuv';

test('a token is read as it was made: 256 random bits, known by their hash', () => {
  const token = newRefreshToken(SESSION, hash);
  const [session, secret = ''] = token.text.split('.');
  assert.is(session, SESSION);
  assert.is(Buffer.from(secret, 'base64url').length, 32);
  assert.is(token.hash, createHash('sha256').update(token.text).digest('base64url'));
  assert.not.ok(token.hash.includes(secret));
  assert.equal(readRefreshToken(token.text, hash), token);
  assert.is.not(newRefreshToken(SESSION, hash).text, token.text);
});

test('one that was not made here is none', () => {
  const { text } = newRefreshToken(SESSION, hash);
  const foreign = newRefreshToken(SESSION, keyedHash(Buffer.from('another key'))).text;
  const changed = `${text.slice(0, 30)}${text[30] === 'A' ? 'B' : 'A'}${text.slice(31)}`;
  for (const bad of [
    '',
    'x',
    `${text}x`,
    ` ${text}`,
    text.slice(0, -1),
    foreign,
    changed,
    `${'é'.repeat(22)}${text.slice(22)}`,
    'a.'.repeat(100_000),
  ]) {
    assert.is(readRefreshToken(bad, hash), undefined);
  }
});

test.run();
