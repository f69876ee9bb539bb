import { hash as argon2 } from '@node-rs/argon2';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { loginHashes } from '../../../src/api/auth/loginHashes.js';
import { costOf, hashPassword, PRESENT_COST, verifyPassword } from '../../../src/lib/passwordHash.js';
import { aUser, clockAt, hash, memoryRecords } from './support.js';

const test = suite('hashes that logins are checked against');
const NAME = hash('username', 'ada');
const imported = await argon2('right', { memoryCost: 64, timeCost: 3, parallelism: 1 });

test('hashes a password of another cost again at its first right login', async () => {
  const clock = clockAt();
  const records = memoryRecords(clock.now);
  const hashes = loginHashes(records, hash, clock.now);
  const user = aUser('ada', imported);
  assert.is(await hashes.of(NAME, user), imported);
  await hashes.renew(NAME, user, imported, 'right');
  const renewed = (await hashes.of(NAME, user)) ?? '';
  assert.is(costOf(renewed), PRESENT_COST);
  assert.ok(await verifyPassword(renewed, 'right'));
  const written = records.calls.put;
  await hashes.renew(NAME, user, renewed, 'right');
  assert.is(records.calls.put, written);
  assert.is(await hashes.of(NAME, aUser('ada', imported, { active: false })), undefined);
  clock.ms += 91 * 86_400_000;
  assert.is(await hashes.of(NAME, user), imported);
});

test('goes by what was imported again once that is another password, or another user', async () => {
  const clock = clockAt();
  const hashes = loginHashes(memoryRecords(clock.now), hash, clock.now);
  await hashes.renew(NAME, aUser('ada', imported), imported, 'right');
  const another = await hashPassword('another');
  assert.is(await hashes.of(NAME, aUser('ada', another)), another);
  assert.is(await hashes.of(NAME, aUser('bob', imported)), imported);
});

test('looks the same up for unknown, inactive and active users, and writes nothing for present costs', async () => {
  const clock = clockAt();
  const records = memoryRecords(clock.now);
  const hashes = loginHashes(records, hash, clock.now);
  const present = await hashPassword('right');
  for (const user of [undefined, aUser('ada', present, { active: false }), aUser('ada', present)]) {
    const before = records.calls.get;
    await hashes.of(NAME, user);
    assert.is(records.calls.get, before + 1);
  }
  await hashes.renew(NAME, aUser('ada', present), present, 'right');
  assert.is(records.calls.put, 0);
});

test.run();
