import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { loginHashes } from '../../../../src/api/auth/loginHashes.js';
import { throttle } from '../../../../src/api/auth/throttle.js';
import { type StoredAnswer, takeKey } from '../../../../src/api/pipeline/idempotency.js';
import { keyedHash } from '../../../../src/domain/keyedHash.js';
import { LOGIN_HASHES, LOGIN_SEEN, SESSIONS } from '../../../../src/domain/recordKeys.js';
import { eraseRecordsOf } from '../../../../src/ops/people/erasure/derivedData.js';
import { attemptRecords } from '../../../../src/messages/webhookAttempts.js';
import type { Records } from '../../../../src/ports/readStore.js';
import { openLedger } from '../../../../src/providers/notifications/ledger.js';
import { smsLimits } from '../../../../src/providers/notifications/smsLimits.js';
import { placeOrder } from '../../../../src/runtime/readmodels/maintenance/repairOrders.js';
import { memoryRecords } from '../../../support/engines/memoryRecords.js';
import { aUser } from '../../../api/auth/support.js';

const test = suite('erase records');

const hash = keyedHash(Buffer.alloc(32, 7));
const ADA = {
  userId: 'u1',
  usernames: ['ada'],
  numbers: ['+447700900001'],
  phoneIds: ['p1'],
  texts: new Set(['gift-of-ada']),
} as const;
const BOB = {
  userId: 'u2',
  usernames: ['bob'],
  numbers: ['+447700900002'],
  phoneIds: ['p2'],
  texts: new Set(['gift-of-bob']),
} as const;
const SENT = { outcome: 'sent', provider: 'twilio', message_id: 'SM1', simulated: false } as const;
const logger = pino({ enabled: false });

const keys = async (records: Records, prefix = ''): Promise<string[]> =>
  (await records.list(prefix)).map(({ key }) => key);

const wide = (text: string): string =>
  [...text].map((letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)).join('');

async function answered(records: Records, command: string, answer: StoredAnswer): Promise<void> {
  const taken = await takeKey(records, command, 'body');
  assert.ok('settle' in taken);
  await taken.settle(answer);
}

/** Everything that a person leaves in records, by the parts that write it. */
async function leaves(
  records: Records,
  { userId, usernames, numbers, phoneIds }: typeof ADA | typeof BOB,
): Promise<void> {
  for (const n of [1, 2]) await records.put(`${SESSIONS}${userId}-${n}`, { user: userId });
  for (const [address, right] of [
    ['203.0.113.1', false],
    ['203.0.113.2', true],
    ['203.0.113.1', false],
  ] as const)
    await throttle(records, hash, Date.now).attempt(
      { address, usernameHash: hash('username', usernames[0]), userId },
      async (reserve) => {
        await reserve();
        return right;
      },
    );
  await records.put(LOGIN_HASHES + hash('username', usernames[0]), { hash: 'of a password' });
  const unit = { transactionId: `t-${userId}`, buyerId: userId, number: numbers[0] };
  await smsLimits(records, hash, Date.now).admit(unit);
  const ledger = await openLedger(records, Date.now, logger);
  await ledger.once(
    `gift-of-${userId}`,
    numbers[0],
    async () => SENT,
    () => false,
  );
  const headers = { 'Gift-Position': 'log:1' };
  await answered(records, `to-${userId}`, { status: 201, headers, body: `{"phone_number":"${numbers[0]}"}` });
  await answered(records, `of-${userId}`, { status: 201, headers, body: `{"name":"${usernames[0].toUpperCase()}"}` });
  await answered(records, `by-${userId}`, { status: 201, headers, body: `{"name":"${wide(usernames[0])}"}` });
  for (const id of [`user-${userId}`, `phone-${phoneIds[0]}`]) {
    const document = { id, position: '1', body: { name: usernames[0], phone_number: numbers[0] } };
    await placeOrder({ records }, { name: 'accounts', build: 1, documents: [{ id, document }], through: '1' });
  }
}

test('removes all that records hold of a person, and nothing of another', async () => {
  const alone = memoryRecords(Date.now);
  await leaves(alone, BOB);
  const both = memoryRecords(Date.now);
  await leaves(both, BOB);
  await leaves(both, ADA);
  assert.ok((await keys(both)).length > (await keys(alone)).length);
  for (let time = 0; time < 2; time++) {
    await eraseRecordsOf({ records: both, hash }, ADA);
    const text = JSON.stringify(await both.list(''));
    for (const left of [
      ADA.numbers[0],
      '"ada"',
      'ADA',
      wide('ada'),
      hash('username', 'ada'),
      hash('phone', ADA.numbers[0]),
      SESSIONS + 'u1',
    ])
      assert.not.match(text, left);
    const others = [...(await keys(both))].filter((key) => !key.includes('u1') && !key.startsWith('repair/'));
    assert.equal(
      others,
      (await keys(alone)).filter((key) => !key.startsWith('repair/')),
    );
    assert.is((await keys(both, 'repair/')).length, 2, 'orders for the other stay');
    assert.match(text, BOB.numbers[0]);
  }
});

test('removes the newer hash of a password also under a name that another user has by now', async () => {
  const records = memoryRecords(Date.now);
  const hashes = loginHashes(records, hash, Date.now);
  for (const id of [ADA.userId, BOB.userId]) {
    const user = aUser(id, 'a hash of another cost');
    await hashes.renew(hash('username', `former-${id}`), user, user.password_hash, 'a password');
  }
  await eraseRecordsOf({ records, hash }, ADA);
  assert.equal(await keys(records, LOGIN_HASHES), [LOGIN_HASHES + hash('username', `former-${BOB.userId}`)]);
});

test('removes addresses of logins also under a name that another user has by now', async () => {
  const records = memoryRecords(Date.now);
  const usernameHash = hash('username', 'former');
  const logIn = async (userId: string, address: string): Promise<void> => {
    await throttle(records, hash, Date.now).attempt({ address, usernameHash, userId }, async () => true);
  };
  await logIn(ADA.userId, '203.0.113.1');
  await logIn(BOB.userId, '203.0.113.2');
  const before = await keys(records, LOGIN_SEEN);
  await eraseRecordsOf({ records, hash }, ADA);
  const after = await keys(records, LOGIN_SEEN);
  assert.is(before.length, 2);
  assert.equal(
    after.map((key) => key.split('.')[0]),
    [LOGIN_SEEN + usernameHash],
  );
  assert.equal((await records.list(LOGIN_SEEN))[0]?.value, { user: BOB.userId });
});

test('keeps an answer without its body, and a claim without its number', async () => {
  const records = memoryRecords(Date.now);
  await leaves(records, ADA);
  const before = (await records.list('send/'))[0];
  await eraseRecordsOf({ records, hash }, ADA);
  const taken = await takeKey(records, 'to-u1', 'body');
  assert.ok('settle' in taken, 'the answer is to be made again');
  assert.equal(taken.first, { status: 201, headers: { 'Gift-Position': 'log:1' } });
  const claim = (await records.list<{ readonly to: string; readonly reply: unknown }>('send/'))[0];
  assert.is(claim?.value.to, '');
  assert.equal(claim?.value.reply, SENT, 'so it is not sent again');
  assert.is(claim?.expiresAt, before?.expiresAt);
});

test('keeps no answer about gifts of the person that holds what support wrote, and that about others', async () => {
  const records = memoryRecords(Date.now);
  for (const parkedId of ['gift-of-ada', 'gift-of-bob']) {
    const request = { what: 'POST /ops/parked/:parkedId/retry', asked: { parkedId }, personal: false, reason: null };
    const answer = { status: 200, headers: {}, body: '{"reason":"Called"}', accessRecord: { request, count: 1 } };
    await answered(records, parkedId, answer);
  }
  await eraseRecordsOf({ records, hash }, ADA);
  const [ada, bob] = [await takeKey(records, 'gift-of-ada', 'body'), await takeKey(records, 'gift-of-bob', 'body')];
  assert.ok('settle' in ada && ada.first?.body === undefined);
  assert.is('settle' in bob ? undefined : bob.body, '{"reason":"Called"}');
});

test('blanks what receivers of webhooks answered about a person, and keeps the attempt', async () => {
  const records = memoryRecords(Date.now);
  const put = async (place: string, response: string, about?: string): Promise<void> => {
    const attempt = { id: place, event_id: 'e', type: 'gift.issued', at: '2026-05-04T12:00:00.000Z', duration_ms: 1 };
    const value = { ...attempt, status: 200, response, ...(about === undefined ? {} : { about }) };
    await records.put(attemptRecords('hook') + place, value, { expiresAt: Date.now() + 60_000 });
  };
  await put('d0', 'Thanks, Ada Lovelace', 'gift-of-ada');
  await put('d1', 'stored for ADA');
  await put('d2', `to ${ADA.numbers[0]}`);
  await put('d3', `to ${ADA.numbers[0].slice(1)}`);
  await put('d4', 'Thanks, Bob', 'gift-of-bob');
  await put('d5', 'ok');
  const before = await records.list<object>(attemptRecords('hook'));
  await eraseRecordsOf({ records, hash }, ADA);
  const after = await records.list<{ readonly response: string }>(attemptRecords('hook'));
  assert.equal(
    after.map(({ value }) => value.response),
    ['', '', '', '', 'Thanks, Bob', 'ok'],
  );
  const rest = ({ value, expiresAt }: { readonly value: object; readonly expiresAt?: number }): object => ({
    ...value,
    response: '',
    expiresAt,
  });
  assert.equal(after.map(rest), before.map(rest));
});

test('finds a person among thousands of records, though others change meanwhile', async () => {
  const stored = memoryRecords(Date.now);
  for (let n = 0; n < 1_201; n++)
    await stored.put(`${SESSIONS}${String(n).padStart(5, '0')}`, { user: n % 3 === 0 ? ADA.userId : BOB.userId });
  const claim = { to: ADA.numbers[0], at: 1 };
  await stored.put('send/g', claim);
  let raced = false;
  const records: Records = {
    ...stored,
    async put(key, value, options) {
      if (!raced && key === 'send/g') {
        raced = true;
        await stored.put(key, { ...claim, reply: SENT });
      }
      return stored.put(key, value, options);
    },
  };
  await eraseRecordsOf({ records, hash }, ADA);
  assert.is((await keys(stored, SESSIONS)).length, 800);
  assert.equal((await stored.get('send/g'))?.value, { ...claim, to: '', reply: SENT });
});

test.run();
