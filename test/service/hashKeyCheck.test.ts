import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { EngineError } from '../../src/lib/engineError.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { refuseUnlessHashKeyFits } from '../../src/service/hashKeyCheck.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';

const KEY = Buffer.from('the key that the log was made with');
const OTHER = Buffer.from('the key of another installation ..');
const test = suite<{ log: MemoryEvents }>('the log’s hash key');
test.before.each((context) => {
  context.log = memoryEvents();
});

const streamOf = (name: string, key = KEY): string => `username-${keyedHash(key)('username', name)}`;
const taken = (userId: string): DomainEvent => ({ type: 'UsernameTaken', data: { user_id: userId } });
const added = (username: string): DomainEvent => ({ type: 'UserAdded', data: { username } });

function withUser({ given }: MemoryEvents, id: string, username: string): void {
  given(streamOf(username), taken(id));
  given(`user-${id}`, added(username));
}

test('accepts the key that usernames were hashed with, and refuses another or none', async ({ log }) => {
  withUser(log, 'ada', 'ada@example.com');
  await refuseUnlessHashKeyFits(log, () => KEY);
  await assert.rejects(
    refuseUnlessHashKeyFits(log, () => OTHER),
    (error) =>
      error instanceof EngineError &&
      /^HASH_KEY: this is not the key that the event log was made with: put .*hash\.key/.test(error.message),
  );
  await assert.rejects(
    refuseUnlessHashKeyFits(log, () => undefined),
    /^EngineError: HASH_KEY: the key that the event log was made with is missing: put/,
  );
});

test('accepts the key that voucher codes were hashed with, and refuses another or none', async ({ log }) => {
  const code = (value: string, key = KEY): void =>
    log.given(`voucherCode-seg-1-${keyedHash(key)('code', value)}`, {
      type: 'VoucherCodeAdded',
      data: { segment_id: 'seg-1', code: value, pin: null },
    });
  code('REAL-0001');
  await refuseUnlessHashKeyFits(log, () => KEY);
  for (const key of [OTHER, undefined])
    await assert.rejects(
      refuseUnlessHashKeyFits(log, () => key),
      /^EngineError: HASH_KEY: /,
    );
});

test('accepts any key for a log without users and codes', async ({ log }) => {
  await refuseUnlessHashKeyFits(log, () => undefined);
  log.given('product-a', { type: 'ProductAdded', data: {} });
  await refuseUnlessHashKeyFits(log, () => OTHER);
});

test('compares usernames as they are reserved, and counts earlier ones', async ({ log }) => {
  log.given(streamOf('ada'), taken('ada'));
  log.given(
    'user-ada',
    added('ＡDA'),
    { type: 'UserChanged', data: { name: 'Ada' } },
    { type: 'UserChanged', data: { username: 'lovelace' } },
  );
  await refuseUnlessHashKeyFits(log, () => KEY);
});

test('learns nothing of the key from a half-done import', async ({ log }) => {
  log.given(streamOf('nobody'), taken('nobody'));
  await refuseUnlessHashKeyFits(log, () => OTHER);
  log.given(streamOf('misspelt'), taken('ben'));
  log.given('user-ben', added('ben'));
  withUser(log, 'ada', 'ada');
  await refuseUnlessHashKeyFits(log, () => KEY);
});

test('accepts another key for a log that was restored without its own', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  log.given('log-restored', { type: 'LogRestored', data: { reason: 'a drill' } });
  await assert.rejects(refuseUnlessHashKeyFits(log, () => OTHER));
  log.given('log-restored', { type: 'LogRestored', data: { reason: 'the key is lost', without_key: true } });
  for (const key of [OTHER, undefined]) await refuseUnlessHashKeyFits(log, () => key);
  log.given(streamOf('ben', OTHER), taken('ben'));
  log.given('user-ben', added('ben'));
  await refuseUnlessHashKeyFits(log, () => OTHER);
  for (const key of [KEY, undefined])
    await assert.rejects(
      refuseUnlessHashKeyFits(log, () => key),
      /HASH_KEY/,
      'that other one is the log’s from then on',
    );
});

test('finds a key that another process makes together with the log', async ({ log }) => {
  let made = false;
  const making = {
    read: log.read.bind(log),
    readAll: async function* (...args: Parameters<MemoryEvents['readAll']>) {
      made = true;
      withUser(log, 'ada', 'ada');
      yield* log.readAll(...args);
    },
  };
  await refuseUnlessHashKeyFits(making, () => (made ? KEY : undefined));
});

test('reads no more of a log than shows whose it is', async ({ log }) => {
  for (let n = 0; n < 30; n++) withUser(log, `user${n}`, `name${n}`);
  const read: string[] = [];
  const watched = {
    readAll: log.readAll.bind(log),
    read: async (stream: string) => (read.push(stream), log.read(stream)),
  };
  await refuseUnlessHashKeyFits(watched, () => KEY);
  assert.deepEqual(read.splice(0), ['log-restored', 'user-user0']);
  await assert.rejects(refuseUnlessHashKeyFits(watched, () => OTHER));
  assert.equal(read.length, 1 + 20, 'the restores and 20 users');
  const far = memoryEvents();
  far.given('gift-a', ...Array.from({ length: 20_001 }, () => ({ type: 'GiftIssued', data: {} })));
  withUser(far, 'ada', 'ada');
  await assert.rejects(
    refuseUnlessHashKeyFits(far, () => OTHER),
    /HASH_KEY/,
    'wherever the first one stands',
  );
});

test.run();
