/** Where receivers are reached: what a notification's outcome rests on. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import type { AccountDocument } from '../../src/projections/accounts.js';
import { paymentMethodLookup, receiverLookups } from '../../src/service/processManagers.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { masterKeys, openSubjects, sealText, type Subjects } from '../../src/runtime/personal/index.js';
import { memoryKeys } from '../support/engines/memoryKeys.js';
import { aUser } from '../api/auth/support.js';

const test = suite('where receivers are reached');

const added = (stream: string, value: object): RecordedEvent =>
  ({
    stream,
    type: 'UserAdded',
    data: value,
    position: '0009',
    at: '2026-03-01T12:00:00.000Z',
  }) as RecordedEvent;

/** `shown`: by the read model, which is behind; `logged`: what the log holds. */
function lookups(shown: AccountDocument | undefined, logged: AccountDocument | undefined) {
  const read: string[] = [];
  const { contact } = receiverLookups({
    events: {
      async read(stream) {
        read.push(stream);
        return logged === undefined ? [] : [added(stream, logged)];
      },
    },
    accounts: { get: async () => shown },
    subjects: { secrets: async () => new Map(), areStored: async () => false },
  });
  return { contact, read };
}

const reached = aUser('ada', '', { phone_number: '+447700900123' });

for (const [what, shown] of [
  ['no user', undefined],
  ['a user without an address', aUser('ada', '')],
] as const) {
  test(`${what} in the read model: the log decides whether there is an address`, async () => {
    assert.equal((await lookups(shown, reached).contact('ada'))?.phone_number, '+447700900123');
    assert.deepEqual((await lookups(shown, shown).contact('ada'))?.device_tokens, shown?.device_tokens);
    assert.equal(await lookups(shown, undefined).contact('ada'), undefined);
  });
}

test('whoever can be reached is not looked for in the log', async () => {
  for (const user of [reached, aUser('ada', '', { device_tokens: ['a'] })]) {
    const { contact, read } = lookups(user, undefined);
    assert.equal((await contact('ada'))?.name, 'ada');
    assert.deepEqual(read, []);
  }
});

test('a number and a message that an erasure has fenced are waited for, since it may be withdrawn', async () => {
  const store = memoryKeys();
  // Each has an empty cache.
  const open = (): Subjects =>
    openSubjects({
      store,
      master: masterKeys(['m'.repeat(43)]),
      lookupOf: ({ kind, text }) => `${kind}:${text}`,
      secretFor: ({ text }) => Buffer.from(text),
    });
  const [phoneId = '', textId = ''] = await open().ids([
    { kind: 'phone', text: '+447700900123' },
    { kind: 'text', text: 'k'.repeat(32) },
  ]);
  const sealed = await sealText(open(), textId, 'Enjoy');
  const looks = (): ReturnType<typeof receiverLookups> =>
    receiverLookups({ events: { read: async () => [] }, accounts: { get: async () => undefined }, subjects: open() });
  await store.fence([phoneId, textId]);
  await assert.rejects(looks().numberOf(phoneId), UnavailableError);
  await assert.rejects(looks().openText(sealed), UnavailableError);
  await store.unfence([phoneId, textId]);
  assert.equal(await looks().numberOf(phoneId), '+447700900123');
  assert.equal(await looks().openText(sealed), 'Enjoy');
  await store.remove([phoneId, textId]);
  assert.equal(await looks().numberOf(phoneId), undefined);
  assert.equal(await looks().openText(sealed), '');
});

test('a payment method that the read model lacks is looked for in the log', async () => {
  const method = { reference: 'pm', kind: 'wallet', prepaid: true, customer: null, active: true, users: ['ada'] };
  const added_ = { ...added('paymentMethod-pm', method), type: 'PaymentMethodAdded' };
  const lookup = paymentMethodLookup({
    events: { read: async (stream) => (stream === 'paymentMethod-pm' ? [added_] : []) },
    accounts: { get: async () => undefined },
  });
  const { kind, prepaid } = (await lookup('pm', 'ada')) ?? {};
  assert.deepEqual([kind, prepaid], ['wallet', true]);
  assert.equal(await lookup('other', 'ada'), undefined);
});

test('a payment method that the read model shows as of before the purchase is looked for in the log', async () => {
  const method = { reference: 'pm', kind: 'card', prepaid: false, customer: 'cus_new', active: true, users: ['ada'] };
  const shown = { ...method, entry: 'paymentMethod', customer: 'cus_old' } as const;
  for (const [before, expected] of [
    [{ ...shown, active: false }, 'cus_new'],
    [{ ...shown, users: ['bob'] }, 'cus_new'],
    [shown, 'cus_old'],
  ] as const) {
    const lookup = paymentMethodLookup({
      events: { read: async () => [{ ...added('paymentMethod-pm', method), type: 'PaymentMethodAdded' }] },
      accounts: { get: async () => before as AccountDocument },
    });
    assert.equal((await lookup('pm', 'ada'))?.customer, expected);
  }
});

test.run();
