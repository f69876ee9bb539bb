import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hashPassword, verifyPassword } from '../../src/lib/passwordHash.js';

const test = suite('commands/passwords');

test('hashes by argon2id with the parameters that were decided, salted', async () => {
  const [one, two] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')]);
  assert.match(one ?? '', /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.is.not(one, two);
});

test('matches only the password of the hash', async () => {
  const hash = await hashPassword('correct horse');
  assert.is(await verifyPassword(hash, 'correct horse'), true);
  assert.is(await verifyPassword(hash, 'Correct horse'), false);
  assert.is(await verifyPassword(hash, ''), false);
});

test('throws for what is no hash', async () => {
  let refused = false;
  await verifyPassword('plain', 'plain').catch(() => (refused = true));
  assert.ok(refused);
});

test.run();
