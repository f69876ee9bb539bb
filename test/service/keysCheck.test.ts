import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { EngineError } from '../../src/lib/engineError.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { lookupOf, usernameSubject } from '../../src/domain/personalFields.js';
import { type CheckedLog, refuseUnlessKeysFit } from '../../src/service/keysCheck.js';
import { masterKeys } from '../../src/runtime/personal/masterKeys.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { type MemoryKeys, memoryKeys } from '../support/engines/memoryKeys.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

const KEY = Buffer.from('the key that the log was made with');
const OTHER = Buffer.from('the key of another installation ..');
/** A log with its key store. */
interface Installation extends CheckedLog {
  readonly events: MemoryEvents;
  readonly keys: MemoryKeys;
  given: MemoryEvents['given'];
}

function newInstallation(): Installation {
  const events = memoryEvents();
  const keys = memoryKeys();
  return { events, keys, subjects: memorySubjects(keys), given: events.given.bind(events) };
}

const test = suite<{ log: Installation }>('the keys of a log');
test.before.each((context) => {
  context.log = newInstallation();
});

/** The username's stream, once the key store has it. */
function reserved({ keys }: Pick<Installation, 'keys'>, name: string, key = KEY): string {
  const id = `id-of-${name}`;
  const secret = masterKeys(['m'.repeat(43)]).seal(Buffer.from(name), id);
  keys.rows.set(id, { id, lookup: lookupOf(keyedHash(key), usernameSubject(name)), secret });
  return `username-${id}`;
}
const taken = (userId: string): DomainEvent => ({ type: 'UsernameTaken', data: { user_id: userId } });

function withUser(log: Installation, id: string, username: string, key = KEY): void {
  log.given(reserved(log, username, key), taken(id));
}

test('accepts the key that usernames were hashed with, and refuses another or none', async ({ log }) => {
  withUser(log, 'ada', 'ada@example.com');
  await refuseUnlessKeysFit(log, () => KEY);
  await assert.rejects(
    refuseUnlessKeysFit(log, () => OTHER),
    (error) =>
      error instanceof EngineError &&
      /^HASH_KEY: this is not the key that the event log was made with: put .*hash\.key/.test(error.message),
  );
  await assert.rejects(
    refuseUnlessKeysFit(log, () => undefined),
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
  await refuseUnlessKeysFit(log, () => KEY);
  for (const key of [OTHER, undefined])
    await assert.rejects(
      refuseUnlessKeysFit(log, () => key),
      /^EngineError: HASH_KEY: /,
    );
});

test('accepts any key for a log without users and codes', async ({ log }) => {
  await refuseUnlessKeysFit(log, () => undefined);
  log.given('product-a', { type: 'ProductAdded', data: {} });
  await refuseUnlessKeysFit(log, () => OTHER);
});

test('accepts the key of a log whose only user is being erased', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  await log.keys.fence(['id-of-ada']);
  await refuseUnlessKeysFit(log, () => KEY);
  await assert.rejects(
    refuseUnlessKeysFit(log, () => OTHER),
    /^EngineError: HASH_KEY: /,
  );
});

test('accepts a log all of whose users were erased, and asks the key of those that came later', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  await log.keys.remove(['id-of-ada']);
  await refuseUnlessKeysFit(log, () => KEY);
  withUser(log, 'ben', 'ben');
  await refuseUnlessKeysFit(log, () => KEY);
  await assert.rejects(
    refuseUnlessKeysFit(log, () => OTHER),
    /^EngineError: HASH_KEY: /,
  );
});

test('refuses a key store that holds none of the log’s usernames', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  withUser(log, 'ben', 'ben');
  log.keys.rows.delete('id-of-ada');
  await refuseUnlessKeysFit(log, () => KEY);
  log.keys.rows.clear();
  await assert.rejects(
    refuseUnlessKeysFit({ ...log, subjects: memorySubjects(log.keys) }, () => KEY),
    /^EngineError: KEYS_URL: the key store holds none of the log's usernames: put back .*keys\.db/,
  );
});

test('accepts a log with a row that no key opens or that was altered, and refuses one of such rows alone', async ({
  log,
}) => {
  withUser(log, 'ada', 'ada');
  withUser(log, 'ben', 'ben');
  const secret = (id: string): string => log.keys.rows.get(id)?.secret ?? '';
  const put = (id: string, changed: string): void => {
    log.keys.rows.set(id, { id, lookup: log.keys.rows.get(id)?.lookup ?? '', secret: changed });
  };
  const whole = secret('id-of-ada');
  const altered = whole.slice(0, -4) + (whole.endsWith('AAAA') ? 'BBBB' : 'AAAA');
  const wrappedElsewhere = masterKeys(['n'.repeat(43)]).seal(Buffer.from('ada'), 'id-of-ada');
  for (const [changed, why] of [
    [altered, 'row id-of-\\w+ of the key store'],
    [wrappedElsewhere, 'this is not the key'],
  ] as const) {
    put('id-of-ada', changed);
    await refuseUnlessKeysFit({ ...log, subjects: memorySubjects(log.keys) }, () => KEY);
    const ben = secret('id-of-ben');
    put('id-of-ben', wrappedElsewhere);
    await assert.rejects(
      refuseUnlessKeysFit({ ...log, subjects: memorySubjects(log.keys) }, () => KEY),
      new RegExp(`^EngineError: MASTER_KEY: (${why}|this is not the key).*put the installation's`),
    );
    put('id-of-ben', ben);
  }
});

test('refuses a key store without usernames, whatever voucher codes say', async ({ log }) => {
  log.given(`voucherCode-seg-1-${keyedHash(KEY)('code', 'A')}`, {
    type: 'VoucherCodeAdded',
    data: { segment_id: 'seg-1', code: 'A', pin: null },
  });
  withUser(log, 'ada', 'ada');
  log.keys.rows.clear();
  await assert.rejects(
    refuseUnlessKeysFit(log, () => KEY),
    /^EngineError: KEYS_URL: /,
  );
});

test('accepts another key for a log that was restored without its own', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  log.given('log-restored', { type: 'LogRestored', data: { reason: 'a drill' } });
  await assert.rejects(refuseUnlessKeysFit(log, () => OTHER));
  log.given('log-restored', { type: 'LogRestored', data: { reason: 'the key is lost', without_key: true } });
  for (const key of [OTHER, undefined]) await refuseUnlessKeysFit(log, () => key);
  withUser(log, 'ben', 'ben', OTHER);
  await refuseUnlessKeysFit(log, () => OTHER);
  for (const key of [KEY, undefined])
    await assert.rejects(
      refuseUnlessKeysFit(log, () => key),
      /HASH_KEY/,
      'that other one is the log’s from then on',
    );
});

test('refuses rows that a lost key wrapped, for a log that was restored without its keys', async ({ log }) => {
  withUser(log, 'ada', 'ada');
  log.given('log-restored', { type: 'LogRestored', data: { reason: 'the key is lost', without_key: true } });
  await refuseUnlessKeysFit(log, () => OTHER);
  const secret = masterKeys(['n'.repeat(43)]).seal(Buffer.from('ada'), 'id-of-ada');
  log.keys.rows.set('id-of-ada', { id: 'id-of-ada', lookup: 'of the lost key', secret });
  await assert.rejects(
    refuseUnlessKeysFit(log, () => OTHER),
    /^EngineError: KEYS_URL: the log was restored without its keys, .*move keys\.db out of DATA_DIR/,
  );
  log.keys.rows.clear();
  await refuseUnlessKeysFit(log, () => OTHER);
});

test('finds a key that another process makes together with the log', async ({ log }) => {
  let made = false;
  const events: CheckedLog['events'] = {
    read: log.events.read.bind(log.events),
    readAll: async function* (...args) {
      made = true;
      withUser(log, 'ada', 'ada');
      yield* log.events.readAll(...args);
    },
  };
  await refuseUnlessKeysFit({ ...log, events }, () => (made ? KEY : undefined));
});

test('reads no more of a log than shows whose it is', async ({ log }) => {
  for (let n = 0; n < 30; n++) withUser(log, `user${n}`, `name${n}`);
  const read: string[] = [];
  const watched: CheckedLog = {
    ...log,
    events: {
      readAll: log.events.readAll.bind(log.events),
      read: async (stream) => (read.push(stream), log.events.read(stream)),
    },
  };
  await refuseUnlessKeysFit(watched, () => KEY);
  assert.deepEqual(read.splice(0), ['log-restored']);
  await assert.rejects(refuseUnlessKeysFit(watched, () => OTHER));
  const far = newInstallation();
  far.given('gift-a', ...Array.from({ length: 20_001 }, () => ({ type: 'GiftIssued', data: {} })));
  withUser(far, 'ada', 'ada');
  await assert.rejects(
    refuseUnlessKeysFit(far, () => OTHER),
    /HASH_KEY/,
    'wherever the first one stands',
  );
});

test.run();
