import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../../../src/commands/transact.js';
import { deriveGiftIds } from '../../../../src/domain/giftIds.js';
import { keyedHash } from '../../../../src/domain/keyedHash.js';
import {
  lookupOf,
  purchaseSubject,
  paymentMethodSubject,
  PERSONAL_FIELDS,
  type PersonName,
  phoneSubject,
  usernameSubject,
  userSubject,
} from '../../../../src/domain/personalFields.js';
import { parkedId } from '../../../../src/domain/parked.js';
import { ErasureWaitsError } from '../../../../src/ops/people/erasure/endPerson.js';
import { erasePerson } from '../../../../src/ops/people/erasure/erasePerson.js';
import { storedErasures, storeErasure } from '../../../../src/ops/people/erasure/erasureRecord.js';
import type { ErasureDeps } from '../../../../src/ops/people/erasure/derivedData.js';
import { reapplyErasures } from '../../../../src/ops/people/erasure/reapplyErasures.js';
import { erasuresOf, finishErasures } from '../../../../src/ops/people/erasure/erasures.js';
import type { Refusal } from '../../../../src/domain/refusal.js';
import type { EventStore } from '../../../../src/ports/eventStore.js';
import type { KeyStore } from '../../../../src/ports/keyStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { encryptedEvents } from '../../../../src/runtime/personal/encryptedEvents.js';
import type { Subjects } from '../../../../src/runtime/personal/subjects.js';
import { type MemoryEvents, memoryEvents } from '../../../support/engines/memoryEvents.js';
import { type MemoryKeys, memoryKeys } from '../../../support/engines/memoryKeys.js';
import { rejectionOf } from '../../../support/engines/readStoreDocuments.js';
import { memorySubjects } from '../../../support/fixtures/memorySubjects.js';
import { eventOf } from '../../../support/service/testLog.js';

const hash = keyedHash(Buffer.alloc(32, 7));
const lookup = (name: PersonName): string => lookupOf(hash, name);
const RULES = new Map(Object.entries(PERSONAL_FIELDS)) as Parameters<typeof encryptedEvents>[2];
const CONTEXT: CommandContext = {
  commandId: 'erase-1',
  correlationId: 'erase-1',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
};
const SEED = '5e'.repeat(32);
const EVE = { kind: 'user', userId: 'eve' } as const;
/** Times after all purchases of the town. */
const [LATER, AFTERWARDS] = ['2099-05-04T12:00:00.000Z', '2099-05-04T13:00:00.000Z'];

interface Town {
  readonly stored: MemoryEvents;
  readonly keys: MemoryKeys;
  readonly subjects: Subjects;
  readonly removed: { records: string[]; derived: number };
  /** What the erasure works on; `tick` is called before and after each change that it makes. */
  deps(tick?: () => void, log?: MemoryEvents): ErasureDeps;
}

/**
 * Eve has had two numbers; the first is Ann's by now, and got a gift while it was Eve's. She bought for Ann, and Ann
 * for her.
 */
async function town(): Promise<Town> {
  const stored = memoryEvents();
  const keys = memoryKeys();
  const subjects = memorySubjects(keys, (name) => lookup(name as PersonName));
  const events = encryptedEvents(stored, subjects, RULES);
  const [eveName = '', annName = '', oldPhone = '', newPhone = ''] = await subjects.ids([
    usernameSubject('eve@person.example'),
    usernameSubject('ann@person.example'),
    phoneSubject('+447700900131'),
    phoneSubject('+447700900132'),
  ]);
  await subjects.ids(['t-sent', 't-got', 't-then', 't-other'].map(purchaseSubject));
  const put = async (stream: string, ...added: [string, object][]): Promise<void> => {
    for (const [type, data] of added) await events.append(stream, [eventOf(type, data)], 'any');
  };
  const user = (name: string, phone_number: string): object => ({
    id: name,
    username: `${name}@person.example`,
    password_hash: 'hash',
    name,
    phone_number,
    device_tokens: [],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
  });
  const method = (users: string[]): object => ({ users, customer: 'cus', active: true, kind: 'card', prepaid: false });
  await put(
    'user-eve',
    ['UserAdded', user('eve', '+447700900131')],
    ['UserChanged', { phone_number: '+447700900132' }],
  );
  await put('user-ann', ['UserAdded', user('ann', '+447700900131')]);
  await put(`username-${eveName}`, ['UsernameTaken', { user_id: 'eve' }]);
  await put(`username-${annName}`, ['UsernameTaken', { user_id: 'ann' }]);
  const at = (hour: number): string => `2026-05-04T${String(hour).padStart(2, '0')}:00:00.000Z`;
  const putAt = async (hour: number, stream: string, type: string, data: object): Promise<void> => {
    await events.append(stream, [{ ...eventOf(type, data), at: at(hour) }], 'any');
  };
  await putAt(1, `phone-${oldPhone}`, 'PhoneTaken', { user_id: 'eve' });
  await putAt(2, 'transaction-t-then', 'GiftsPurchased', {
    transaction_id: 't-then',
    seed: SEED,
    buyer_id: 'ann',
    receivers: [{ phone_id: oldPhone }],
    payment_reference: 'shared',
  });
  await putAt(2, 'transaction-t-then', 'PaymentCharged', { amount: 1, provider: 'test', charge_id: 'c-t-then' });
  await putAt(3, `phone-${oldPhone}`, 'PhoneGivenUp', { user_id: 'eve' });
  await putAt(4, `phone-${oldPhone}`, 'PhoneTaken', { user_id: 'ann' });
  await put(`phone-${newPhone}`, ['PhoneTaken', { user_id: 'eve' }]);
  await put('paymentMethod-own', ['PaymentMethodAdded', method(['eve'])]);
  await put('paymentMethod-shared', ['PaymentMethodAdded', method(['ann', 'eve'])]);
  const bought = async (id: string, buyer_id: string, receiver: object): Promise<void> =>
    put(
      `transaction-${id}`,
      ['GiftsPurchased', { transaction_id: id, seed: SEED, buyer_id, receivers: [receiver], payment_reference: 'own' }],
      ['PaymentCharged', { amount: 1, provider: 'test', charge_id: `c-${id}` }],
    );
  await bought('t-sent', 'eve', { user_id: 'ann' });
  await bought('t-got', 'ann', { phone_id: newPhone });
  await bought('t-other', 'ann', { phone_id: oldPhone });
  const removed = { records: [] as string[], derived: 0 };
  return {
    stored,
    keys,
    subjects,
    removed,
    deps: (tick = () => undefined, from = stored) => {
      const ticking = <A extends unknown[], R>(call: (...args: A) => Promise<R>): ((...args: A) => Promise<R>) => {
        return async (...args) => {
          tick();
          const result = await call(...args);
          tick();
          return result;
        };
      };
      const store: KeyStore = {
        ...keys,
        fence: ticking(keys.fence.bind(keys)),
        unfence: ticking(keys.unfence.bind(keys)),
        remove: ticking(keys.remove.bind(keys)),
        putErasure: ticking(keys.putErasure.bind(keys)),
      };
      // Each process has a memory of its own.
      const own = memorySubjects(keys, (name) => lookup(name as PersonName));
      const log = encryptedEvents(from, own, RULES);
      const watched: EventStore = { ...log, append: ticking(log.append.bind(log)) };
      return {
        events: watched,
        keys: store,
        subjects: own,
        settle: async () => tick(),
        removeRecords: async ({ usernames, numbers }) => {
          tick();
          removed.records.push(...usernames, ...numbers);
          tick();
        },
        removeDerived: async () => {
          tick();
          removed.derived += 1;
          tick();
        },
      };
    },
  };
}

const LEFT = [
  userSubject('ann'),
  usernameSubject('ann@person.example'),
  phoneSubject('+447700900131'),
  paymentMethodSubject('shared'),
  purchaseSubject('t-other'),
];

async function isErased({ stored, keys, removed }: Town): Promise<void> {
  assert.equal([...keys.rows.values()].map((row) => row.lookup).sort(), LEFT.map(lookup).sort());
  assert.not.ok([...keys.rows.values()].some(({ fenced }) => fenced === true));
  const types = (stream: string): string[] => stored.log.filter((one) => one.stream === stream).map(({ type }) => type);
  assert.equal(types('user-eve'), ['UserAdded', 'UserChanged', 'UserRetired', 'PersonErased']);
  assert.equal(types('paymentMethod-own'), ['PaymentMethodAdded', 'PaymentMethodErased']);
  assert.equal(types('paymentMethod-shared'), ['PaymentMethodAdded']);
  assert.equal(stored.log.filter(({ type }) => type === 'UsernameGivenUp').length, 1);
  const [erased] = stored.log.filter(({ type }) => type === 'PersonErased');
  assert.equal(erased?.metadata.by, { user: 'sue' });
  assert.ok(removed.derived > 0);
  assert.equal([...new Set(removed.records)].sort(), ['+447700900132', 'eve@person.example']);
}

const test = suite('erasure of a person');

test('destroys what opens a person’s data, and nothing of others', async () => {
  const made = await town();
  const { already, erasure } = await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  assert.is(already, false);
  assert.is(erasure.done_at, CONTEXT.now);
  await isErased(made);
  const again = await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'once more');
  assert.is(again.already, true);
  assert.is(again.erasure.id, erasure.id);
  await isErased(made);
});

test('erases a shared payment method with the last of its users', async () => {
  const made = await town();
  const shared = lookup(paymentMethodSubject('shared'));
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  assert.ok((await made.keys.byLookup([shared])).has(shared), 'Ann uses it');
  const ann = { kind: 'user', userId: 'ann' } as const;
  await erasePerson(made.deps(), ann, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
  assert.is(made.keys.rows.size, 0);
  assert.is(made.stored.log.findLast(({ stream }) => stream === 'paymentMethod-shared')?.type, 'PaymentMethodErased');
});

test('leaves gifts that an earlier holder of the number got', async () => {
  const made = await town();
  const ann = { kind: 'user', userId: 'ann' } as const;
  const { events } = made.deps();
  const seed = randomBytes(32).toString('hex');
  const [gift = ''] = deriveGiftIds(seed, 1).map(({ gift_id }) => gift_id);
  const [oldPhone = ''] = await made.subjects.find([phoneSubject('+447700900131')]);
  const bought = { transaction_id: 't-eves', seed, buyer_id: 'dan', receivers: [{ phone_id: oldPhone }] };
  await made.subjects.ids([purchaseSubject('t-eves')]);
  const whileEves = eventOf('GiftsPurchased', { ...bought, payment_reference: 'dans' }, '2026-05-04T02:30:00.000Z');
  await events.append('transaction-t-eves', [whileEves], 'none');
  const blocked = { cause: 'support', reason: 'Eve called' };
  await events.append(`gift-${gift}`, [eventOf('GiftBlocked', blocked)], 'none');
  // Ann has the number by now, so it goes with her. The gift that it was sent to while Eve had it is Eve's.
  await erasePerson(made.deps(), ann, CONTEXT, 'asked for it');
  assert.is((await made.keys.byLookup([lookup(phoneSubject('+447700900131'))])).size, 0);
  const messages = ['t-eves', 't-other'].map((id) => lookup(purchaseSubject(id)));
  assert.equal([...(await made.keys.byLookup(messages)).keys()], [messages[0]]);
  const [kept] = await made.deps().events.read(`gift-${gift}`);
  assert.equal(kept?.data, blocked);
});

test('erases a number that was once a user’s without the gifts that the user got', async () => {
  const made = await town();
  const { events } = made.deps();
  const [oldPhone = ''] = await made.subjects.find([phoneSubject('+447700900131')]);
  const seed = randomBytes(32).toString('hex');
  const bought = { transaction_id: 't-late', seed, buyer_id: 'dan', receivers: [{ phone_id: oldPhone }] };
  await made.subjects.ids([purchaseSubject('t-late')]);
  await events.append(`phone-${oldPhone}`, [eventOf('PhoneGivenUp', { user_id: 'ann' }, LATER)], 'any');
  const afterwards = eventOf('GiftsPurchased', { ...bought, payment_reference: 'dans' }, AFTERWARDS);
  await events.append('transaction-t-late', [afterwards], 'none');
  await erasePerson(made.deps(), { kind: 'number', phoneId: oldPhone }, CONTEXT, 'asked for it');
  const messages = ['t-then', 't-other', 't-late'].map((id) => lookup(purchaseSubject(id)));
  assert.equal([...(await made.keys.byLookup(messages)).keys()].sort(), messages.slice(0, 2).sort());
});

test('is finished by a repeat, wherever it died', async () => {
  for (let moment = 1; ; moment++) {
    const made = await town();
    let left = moment;
    const deps = made.deps(() => {
      left -= 1;
      if (left === 0) throw new UnavailableError('died here');
    });
    const died = await erasePerson(deps, EVE, CONTEXT, 'asked for it').then(
      () => false,
      (error: unknown) => error instanceof UnavailableError,
    );
    if (!died) {
      assert.ok(moment > 30, `only ${moment} moments`);
      return;
    }
    await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
    await isErased(made);
    const erasures = [];
    for await (const erasure of storedErasures(made.keys)) erasures.push(erasure);
    assert.is(erasures.length, 1, `at moment ${moment}`);
  }
});

test('waits for money in flight, with the person fenced, and goes on once it is settled', async () => {
  const made = await town();
  made.stored.given('transaction-t-slow', {
    type: 'GiftsPurchased',
    data: { transaction_id: 't-slow', seed: SEED, buyer_id: 'eve', receivers: [{}], payment_reference: 'own' },
  });
  try {
    await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
    assert.unreachable();
  } catch (error) {
    assert.instance(error, ErasureWaitsError);
    assert.equal((error as ErasureWaitsError).waitsFor, ['the payment of transaction t-slow']);
  }
  assert.ok(made.keys.rows.size > LEFT.length, 'nothing is removed yet');
  assert.instance(await rejectionOf(made.subjects.ids([userSubject('eve')])), UnavailableError, 'no event of hers');
  await made.subjects.ids([phoneSubject('+447700900132'), usernameSubject('eve@person.example')]);
  const own = (await made.keys.byLookup([lookup(paymentMethodSubject('own'))])).get(
    lookup(paymentMethodSubject('own')),
  );
  assert.is(own?.fenced, undefined, 'the charge still needs its customer');
  made.stored.given('transaction-t-slow', {
    type: 'PaymentDeclined',
    data: { provider: 'test', code: 'no' },
  });
  await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
  await isErased(made);
});

test('waits for a refund that is parked, until a person discards it', async () => {
  const made = await town();
  const charge = { provider: 'p', charge_id: 'ch_1', amount: 500 };
  const refund = { refund_id: 'r1', attempt: 1, gift_ids: [], kept: {}, ...charge, payment_reference: 'own' };
  made.stored.given(
    'transaction-t-back',
    {
      type: 'GiftsPurchased',
      data: { transaction_id: 't-back', seed: SEED, buyer_id: 'eve', receivers: [{}], payment_reference: 'own' },
    },
    { type: 'PaymentCharged', data: charge },
    { type: 'RefundStarted', data: refund },
  );
  const work = { entity: 'r1', transaction_id: 't-back', step: 'refund', times: 1 };
  made.stored.given('parked-refund', { type: 'WorkParked', data: { ...work, cause: 'by hand', event_id: 'e' } });
  const waits = await rejectionOf(erasePerson(made.deps(), EVE, CONTEXT, 'asked for it'));
  assert.equal((waits as ErasureWaitsError).waitsFor, ['refund r1 of transaction t-back']);
  made.stored.given('parked-refund', { type: 'WorkDiscarded', data: { ...work, reason: 'given back by hand' } });
  await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
  await isErased(made);
});

test('is finished by itself, under the name of who asked', async () => {
  const made = await town();
  let ticks = 0;
  const dying = made.deps(() => {
    ticks += 1;
    if (ticks > 12) throw new UnavailableError('died here');
  });
  await erasePerson(dying, EVE, CONTEXT, 'asked for it').then(
    () => assert.unreachable(),
    () => undefined,
  );
  const ending = new AbortController();
  const later = '2026-05-04T12:05:00.000Z';
  await finishErasures(erasuresOf(made.deps()), () => later, {
    signal: ending.signal,
    onTrouble: () => ending.abort(),
  });
  await isErased(made);
});

/** Of which one stream can't be read. */
const withUnreadable = (deps: ErasureDeps, unreadable: string): ErasureDeps => ({
  ...deps,
  events: {
    ...deps.events,
    read: async (stream, options) => {
      if (stream === unreadable) throw new Error('altered');
      return deps.events.read(stream, options);
    },
  },
});

test('finishes other erasures while one fails', async () => {
  const made = await town();
  const at = '2026-05-04T11:00:00.000Z';
  const left = { reason: 'asked for it', by: { user: 'sue' }, at };
  await storeErasure(made.keys, { id: 'A'.repeat(22), person: { kind: 'user', userId: 'ann' }, ...left });
  await storeErasure(made.keys, { id: 'B'.repeat(22), person: EVE, ...left });
  const failing = withUnreadable(made.deps(), 'user-ann');
  const ending = new AbortController();
  const told: (Error | undefined)[] = [];
  const onTrouble = (error: Error | undefined): void => {
    told.push(error);
    ending.abort();
  };
  await finishErasures(erasuresOf(failing), () => CONTEXT.now, { signal: ending.signal, onTrouble });
  assert.is(told[0]?.message, 'altered');
  assert.ok(made.stored.log.some(({ stream, type }) => stream === 'user-eve' && type === 'PersonErased'));
});

/** The streams of Eve's present number, and how Ann takes it. */
async function newNumber({ subjects, deps }: Town): Promise<{ readonly id: string; take(): Promise<void> }> {
  const [id = ''] = await subjects.find([phoneSubject('+447700900132')]);
  const { events } = deps();
  return {
    id,
    async take() {
      await events.append(
        `phone-${id}`,
        [eventOf('PhoneTaken', { user_id: 'ann' }, '2026-05-04T13:00:00.000Z')],
        'any',
      );
    },
  };
}

const boughtBy = (buyer_id: string, receiver: object): { readonly type: string; readonly data: object } => ({
  type: 'GiftsPurchased',
  data: { transaction_id: 't-slow', seed: SEED, buyer_id, receivers: [receiver], payment_reference: 'own' },
});

test('empties what support wrote about gifts of the person, and keeps that of others', async () => {
  const made = await town();
  const seedOf = async (id: string): Promise<string> => {
    const seed = randomBytes(32).toString('hex');
    const data = { transaction_id: id, seed, buyer_id: 'ann', payment_reference: 'shared' };
    const receivers = id === 't-shared' ? [{ user_id: 'bob' }, { user_id: 'eve' }] : [{ user_id: 'bob' }];
    await made.deps().events.append(`transaction-${id}`, [eventOf('GiftsPurchased', { ...data, receivers })], 'any');
    const charged = eventOf('PaymentCharged', { amount: 1, provider: 'test', charge_id: `c-${id}` });
    await made.deps().events.append(`transaction-${id}`, [charged], 'any');
    return seed;
  };
  const [bobs = '', eves = ''] = deriveGiftIds(await seedOf('t-shared'), 2).map(({ gift_id }) => gift_id);
  await seedOf('t-bobs');
  const parkedOf = (entity: string, transaction_id: string): object => ({
    entity,
    transaction_id,
    step: 's',
    times: 1,
  });
  const written: readonly [string, string, object][] = [
    [`gift-${eves}`, 'GiftBlocked', { cause: 'support:b', ticket: 'Eve-131' }],
    ['user-eve', 'UserRetired', {}],
    ['paymentMethod-own', 'PaymentMethodRetired', {}],
    [`notification-${eves}`, 'NotificationRequested', { transaction_id: 't-shared', attempt: 2, gift_revision: 0 }],
    ['transaction-t-shared', 'RefundRequested', { refund_id: 'r', gift_ids: [eves], voided: false }],
    [`gift-${bobs}`, 'GiftBlocked', { cause: 'support' }],
    ['parked-notification', 'WorkRetried', parkedOf(eves, 't-shared')],
    ['parked-refund', 'WorkDiscarded', parkedOf('r', 't-shared')],
    ['parked-notification', 'WorkDiscarded', parkedOf(bobs, 't-shared')],
    ['transaction-t-bobs', 'RefundRequested', { refund_id: 's', gift_ids: [], voided: false }],
    [`gift-${eves}`, 'GiftBlocked', { cause: 'dispute:d' }],
  ];
  for (const [stream, type, data] of written)
    await made.deps().events.append(stream, [eventOf(type, { ...data, reason: 'Eve called' })], 'any');
  const stored = made.stored.log.filter(({ data }) => 'reason' in data);
  assert.not.match(JSON.stringify(made.stored.log), 'Eve-131');
  assert.equal(
    stored.map(({ data }) => (data as { readonly cause?: string }).cause),
    ['dispute:d'],
  );
  const reasons = async (): Promise<unknown[]> =>
    Promise.all(
      written.map(async ([stream, type, { cause }]: [string, string, { cause?: string }]) => {
        const events = await made.deps().events.read(stream);
        return events
          .map((one) => ({ type: one.type, data: one.data as { readonly cause?: string; readonly reason?: string } }))
          .find((one) => one.type === type && one.data.cause === cause)?.data.reason;
      }),
    );
  assert.equal(await reasons(), Array(11).fill('Eve called'));
  // A refund under way would hold the erasure up.
  await made
    .deps()
    .events.append('transaction-t-shared', [eventOf('NothingRefunded', { refund_id: 'r', kept: {} })], 'any');
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  const [blocked] = await made.deps().events.read(`gift-${eves}`);
  assert.equal(blocked?.data, { cause: 'support:b', ticket: '', reason: '' });
  const kept = 'Eve called';
  assert.equal(await reasons(), ['', '', '', '', '', kept, '', '', kept, kept, kept]);
});

test('empties the reasons of calls about the person, and keeps those of calls about others', async () => {
  const made = await town();
  const [got = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
  const work = { entity: 'refund-1', transaction_id: 't-got', step: 'refund', times: 1, reason: '' };
  await made.deps().events.append('parked-refund', [eventOf('WorkRetried', work)], 'any');
  const asked: readonly (readonly [object, boolean])[] = [
    [{ personId: 'eve' }, true],
    [{ person: 'eve' }, true],
    [{ by: 'name', found: ['ann', 'eve'] }, true],
    [{ gift: got }, true],
    [{ giftId: 'redemption', transactionId: 't-got' }, true],
    [{ parkedId: 'refund-1' }, true],
    [{ parkedId: parkedId('refund', 'refund-1') }, true],
    [{ personId: 'ann' }, false],
    [{ by: 'name', found: ['ann'] }, false],
    [{ by: 'name', found: ['ann', 'evelyn'] }, false],
    [{ parkedId: 'refund-2' }, false],
    [{ by: 'phone_number', found: [] }, false],
  ];
  for (const [index, [one]] of asked.entries()) {
    const data = { what: 'call', asked: one, personal: true, reason: 'Eve called', count: 1 };
    await made.deps().events.append(`access-${index}`, [eventOf('RecordsShown', data)], 'none');
  }
  const clear = made.stored.log.filter(({ type, data }) => type === 'RecordsShown' && 'reason' in data);
  assert.equal(
    clear.map(({ data }) => (data as { readonly asked: object }).asked),
    [{ by: 'phone_number', found: [] }],
  );
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  for (const [index, [one, gone]] of asked.entries()) {
    const [shown] = await made.deps().events.read(`access-${index}`);
    const data = { what: 'call', asked: one, personal: true, reason: gone ? '' : 'Eve called', count: 1 };
    assert.equal(shown?.data, data, JSON.stringify(one));
  }
});

test('erases a person whose fields and whose number in the key store were altered, and says so', async () => {
  const made = await town();
  const other = (text: string): string => text.slice(0, -4) + (text.endsWith('AAAA') ? 'BBBB' : 'AAAA');
  for (const { type, stream, metadata } of made.stored.log)
    if (type === 'UserChanged' || stream === 'paymentMethod-own')
      Object.assign(metadata.personal ?? {}, { box: other(metadata.personal?.box ?? '') });
  const number = (await made.keys.byLookup([lookup(phoneSubject('+447700900132'))])).get(
    lookup(phoneSubject('+447700900132')),
  );
  if (number === undefined) throw new Error('there is no such number');
  made.keys.rows.set(number.id, { ...number, secret: other(number.secret) });
  const { unreadable } = await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  assert.equal(unreadable, [`phone-${number.id}`]);
  assert.equal([...new Set(made.removed.records)], ['eve@person.example']);
  assert.equal([...made.keys.rows.values()].map((row) => row.lookup).sort(), LEFT.map(lookup).sort());
  assert.ok(made.stored.log.some(({ type, stream }) => type === 'PersonErased' && stream === 'user-eve'));
  assert.ok(
    made.stored.log.some(({ type, stream }) => type === 'PaymentMethodErased' && stream === 'paymentMethod-own'),
  );
});

test('leaves a name alone that another user has taken while it waited for money', async () => {
  const made = await town();
  made.stored.given('transaction-t-slow', boughtBy('eve', {}));
  assert.instance(await rejectionOf(erasePerson(made.deps(), EVE, CONTEXT, 'asked for it')), ErasureWaitsError);
  const number = await newNumber(made);
  await number.take();
  made.stored.given('transaction-t-slow', { type: 'PaymentDeclined', data: { provider: 'test', code: 'no' } });
  await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
  assert.equal(await made.subjects.find([phoneSubject('+447700900132')]), [number.id]);
});

test('leaves nothing of others fenced where money comes just before the fence', async () => {
  const made = await town();
  const deps: ErasureDeps = {
    ...made.deps(),
    settle: async () => made.stored.given('transaction-t-slow', boughtBy('eve', {})),
  };
  assert.instance(await rejectionOf(erasePerson(deps, EVE, CONTEXT, 'asked for it')), ErasureWaitsError);
  const fenced = [...made.keys.rows.values()].filter((row) => row.fenced === true);
  assert.equal(
    fenced.map((row) => row.lookup),
    [lookup(userSubject('eve'))],
  );
});

test('destroys nothing of another user who takes a name just before the fence', async () => {
  const made = await town();
  const number = await newNumber(made);
  const deps: ErasureDeps = { ...made.deps(), settle: number.take };
  const error = await rejectionOf(erasePerson(deps, EVE, CONTEXT, 'asked for it'));
  assert.instance(error, UnavailableError);
  assert.match(error.message, 'another user has taken a name of the person just now');
  assert.equal(await made.subjects.find([phoneSubject('+447700900132')]), [number.id]);
  await made.subjects.ids(['t-eves', 't-anns'].map(purchaseSubject));
  for (const [id, at] of [
    ['t-eves', '2026-05-04T11:00:00.000Z'],
    ['t-anns', '2026-05-04T14:00:00.000Z'],
  ] as const) {
    const data = { ...boughtBy('bob', { phone_id: number.id }).data, transaction_id: id };
    await made.deps().events.append(`transaction-${id}`, [eventOf('GiftsPurchased', data, at)], 'any');
  }
  await erasePerson(made.deps(), EVE, { ...CONTEXT, commandId: 'erase-2' }, 'asked for it');
  assert.equal(await made.subjects.find([phoneSubject('+447700900132')]), [number.id]);
  const [eves, anns] = await made.subjects.find(['t-eves', 't-anns'].map(purchaseSubject));
  assert.ok(anns !== undefined, 'a message to Ann stays');
  assert.is(eves, undefined, 'one to Eve goes, though the number is that of Ann');
});

test('withdraws the erasure of a number that a user has taken since it was started', async () => {
  for (const when of ['before', 'meanwhile'] as const) {
    const made = await town();
    const [phoneId = ''] = await made.subjects.ids([phoneSubject('+447700900199')]);
    await made.subjects.ids([purchaseSubject('t-slow')]);
    made.stored.given('transaction-t-slow', boughtBy('bob', { phone_id: phoneId }));
    const person = { kind: 'number', phoneId } as const;
    const rows = made.keys.rows.size;
    const take = (): void => made.stored.given(`phone-${phoneId}`, { type: 'PhoneTaken', data: { user_id: 'ann' } });
    if (when === 'before') {
      const left = { reason: 'asked for it', by: { user: 'sue' }, at: CONTEXT.now };
      await storeErasure(made.keys, { id: 'A'.repeat(22), person, ...left });
      await made.keys.fence([phoneId]);
      take();
    }
    const deps: ErasureDeps = { ...made.deps(), settle: async () => (when === 'meanwhile' ? take() : undefined) };
    for (let call = 1; call <= 2; call++)
      assert.is(
        (
          (await rejectionOf(
            erasePerson(deps, person, { ...CONTEXT, commandId: `erase-${call}` }, 'asked for it'),
          )) as Refusal
        ).code,
        'number_of_user',
        when,
      );
    assert.is(made.keys.rows.size, rows);
    assert.not.ok([...made.keys.rows.values()].some(({ fenced }) => fenced === true));
    assert.not.ok(made.stored.log.some(({ type }) => type === 'PersonErased'));
    const all = [];
    for await (const erasure of storedErasures(made.keys)) all.push(erasure.withdrawn_at);
    assert.equal(all, [CONTEXT.now]);
    // Nothing tries it again.
    const ending = new AbortController();
    const told: unknown[] = [];
    const onTrouble = (error: Error | undefined): void => {
      told.push(error);
      ending.abort();
    };
    await finishErasures(erasuresOf(deps), () => '2026-05-05T12:00:00.000Z', { signal: ending.signal, onTrouble });
    assert.equal(told, [undefined]);
  }
});

/** A log from when it had so many events. */
async function olderLog({ stored }: Town, count: number): Promise<MemoryEvents> {
  const older = memoryEvents();
  for (const event of stored.log.slice(0, count)) await older.append(event.stream, [event], 'any');
  return older;
}

const nothing = async (): Promise<void> => undefined;
const again = { settle: nothing, removeDerived: nothing };

test('repeats an erasure in a log from before it, with names and payment methods', async () => {
  const made = await town();
  const count = made.stored.log.length;
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  const older = await olderLog(made, count);
  const deps = { ...made.deps(undefined, older), ...again };
  assert.is((await reapplyErasures(deps, CONTEXT.now)).again, 1);
  await isErased({ ...made, stored: older });
  assert.is(older.log.findLast(({ type }) => type === 'PhoneGivenUp')?.data['user_id' as never], 'eve');
  assert.is((await reapplyErasures(deps, CONTEXT.now)).again, 0);
  // A service finishes what read models are to follow.
  const ending = new AbortController();
  const { derived } = made.removed;
  await finishErasures(erasuresOf(made.deps(undefined, older)), () => '2026-05-04T12:05:00.000Z', {
    signal: ending.signal,
    onTrouble: () => ending.abort(),
  });
  assert.is(made.removed.derived, derived + 1);
  await isErased({ ...made, stored: older });
});

test('repeats an erasure in an older log, wherever the repeat died', async () => {
  for (let moment = 1; ; moment++) {
    const made = await town();
    const count = made.stored.log.length;
    await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
    const older = await olderLog(made, count);
    let left = moment;
    const dying = made.deps(() => {
      left -= 1;
      if (left <= 0) throw new UnavailableError('died here');
    }, older);
    const { derived } = made.removed;
    await reapplyErasures({ ...dying, ...again }, CONTEXT.now).catch(() => undefined);
    await reapplyErasures({ ...made.deps(undefined, older), ...again }, CONTEXT.now);
    await finishErasures(erasuresOf(made.deps(undefined, older)), () => '2026-05-05T12:00:00.000Z', endedAtOnce());
    assert.is(made.removed.derived, derived + 1, `at moment ${moment}`);
    await isErased({ ...made, stored: older });
    if (left > 0) {
      assert.ok(moment > 12, `only ${moment} moments`);
      return;
    }
  }
});

test('repeats in an older log the erasure of a number, and of no user who is not there', async () => {
  const made = await town();
  const done = { reason: 'asked for it', by: { user: 'sue' }, at: CONTEXT.now, done_at: CONTEXT.now };
  const phoneId = 'N'.repeat(22);
  await storeErasure(made.keys, { id: 'A'.repeat(22), person: { kind: 'number', phoneId }, ...done });
  await storeErasure(made.keys, { id: 'B'.repeat(22), person: { kind: 'user', userId: 'later' }, ...done });
  const deps = { ...made.deps(), ...again };
  assert.is((await reapplyErasures(deps, CONTEXT.now)).again, 1);
  assert.is((await reapplyErasures(deps, CONTEXT.now)).again, 0);
  const erased = made.stored.log.filter(({ type }) => type === 'PersonErased');
  assert.equal(
    erased.map(({ stream }) => stream),
    [`phone-${phoneId}`],
  );
});

/** The key store from before the erasure: it knows neither the erasure nor what was removed. */
async function withOldKeys(made: Town): Promise<Town> {
  const rows = new Map(made.keys.rows);
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  const old = await town();
  old.keys.rows.clear();
  for (const [id, row] of rows) old.keys.rows.set(id, row);
  return { ...old, stored: made.stored, deps: (tick, from = made.stored) => old.deps(tick, from) };
}

test('repeats an erasure in a key store from before it, whatever money has moved since', async () => {
  const made = await withOldKeys(await town());
  assert.ok(made.keys.rows.size > LEFT.length);
  made.stored.given('transaction-t-sent', { type: 'RefundRequested', data: { refund_id: 'r1', gifts: [], amount: 1 } });
  const deps = { ...made.deps(), ...again };
  const { again: count, open } = await reapplyErasures(deps, CONTEXT.now);
  assert.equal([count, open], [1, []]);
  await finishErasures(erasuresOf(made.deps()), () => '2026-05-05T12:00:00.000Z', endedAtOnce());
  await isErased(made);
});

function endedAtOnce(): { readonly signal: AbortSignal; readonly onTrouble: () => void } {
  const ending = new AbortController();
  return { signal: ending.signal, onTrouble: () => ending.abort() };
}

test('repeats other erasures where one waits and one fails, and names both', async () => {
  const made = await town();
  const listed = (id: string, userId: string): Parameters<typeof storeErasure>[1] => ({
    id: id.repeat(22),
    person: { kind: 'user', userId },
    reason: 'asked for it',
    by: { user: 'sue' },
    at: CONTEXT.now,
  });
  made.stored.given('transaction-t-slow', boughtBy('ann', {}));
  made.stored.given('user-bad', { type: 'UserAdded', data: { id: 'bad' } });
  const deps = withUnreadable({ ...made.deps(), ...again }, 'user-bad');
  const list = [listed('A', 'ann'), listed('B', 'bad'), listed('C', 'eve')];
  const { again: count, open, scanned } = await reapplyErasures(deps, CONTEXT.now, { listed: list });
  assert.is(count, 1);
  assert.equal(
    open.map(({ erasure, error }) => [erasure.person, error.message]),
    [
      [list[0]?.person, 'the erasure has started and waits for the payment of transaction t-slow'],
      [list[1]?.person, 'altered'],
    ],
  );
  assert.is(scanned, undefined, 'the next scan is of everything');
  assert.ok(made.stored.log.some(({ stream, type }) => stream === 'user-eve' && type === 'PersonErased'));
  made.stored.given('transaction-t-slow', { type: 'PaymentDeclined', data: { provider: 'test', code: 'no' } });
  await finishErasures(erasuresOf(made.deps()), () => '2026-05-05T12:00:00.000Z', endedAtOnce());
  for (const { person } of list)
    assert.ok(
      made.stored.log.some(
        ({ stream, type }) =>
          stream === `user-${person.kind === 'user' ? person.userId : ''}` && type === 'PersonErased',
      ),
    );
});

test('scans on from an earlier scan, and everything where the key store has fewer erasures', async () => {
  const made = await town();
  await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
  const from: unknown[] = [];
  const plain = made.deps();
  const deps: ErasureDeps = {
    ...plain,
    ...again,
    events: {
      ...plain.events,
      readAll: (after, ...asked) => {
        from.push(after);
        return plain.events.readAll(after, ...asked);
      },
    },
  };
  const { scanned } = await reapplyErasures(deps, CONTEXT.now);
  assert.equal(scanned, { position: made.stored.log.at(-1)?.position, known: 2 });
  await reapplyErasures(deps, CONTEXT.now, { scanned });
  await reapplyErasures(deps, CONTEXT.now, { scanned: { position: scanned?.position ?? '', known: 3 } });
  assert.equal(from, [undefined, scanned?.position, undefined]);
});

test('finishes an erasure in a log from before its user, and appends nothing', async () => {
  const made = await town();
  const person = { kind: 'user', userId: 'later' } as const;
  const left = { reason: 'asked for it', by: { user: 'sue' }, at: CONTEXT.now };
  await storeErasure(made.keys, { id: 'A'.repeat(22), person, ...left });
  const { erasure, position } = await erasePerson(made.deps(), person, CONTEXT, 'asked for it');
  assert.is(erasure.done_at, CONTEXT.now);
  assert.is(position, undefined);
  assert.not.ok(made.stored.log.some(({ stream }) => stream === 'user-later'));
});

test.run();
