import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../../src/commands/context.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import {
  lookupOf,
  purchaseSubject,
  paymentMethodSubject,
  PERSONAL_FIELDS,
  type PersonName,
  phoneSubject,
  usernameSubject,
  userSubject,
} from '../../../src/domain/personalFields.js';
import { erasePerson, ErasureWaitsError } from '../../../src/ops/people/erasure/erasePerson.js';
import { storedErasures, storeErasure } from '../../../src/ops/people/erasure/erasureRecord.js';
import type { ErasureDeps } from '../../../src/ops/people/erasure/erasureDeps.js';
import { reapplyToLog } from '../../../src/ops/people/erasure/reapplyErasures.js';
import { finishErasures } from '../../../src/ops/people/erasure/finishErasures.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { KeyStore } from '../../../src/ports/keyStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { encryptedEvents } from '../../../src/runtime/personal/encryptedEvents.js';
import type { Subjects } from '../../../src/runtime/personal/subjects.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import { type MemoryKeys, memoryKeys } from '../../support/engines/memoryKeys.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';
import { eventOf } from '../../support/service/house.js';

const hash = keyedHash(Buffer.alloc(32, 7));
const lookup = (name: PersonName): string => lookupOf(hash, name);
const RULES = new Map(Object.entries(PERSONAL_FIELDS)) as Parameters<typeof encryptedEvents>[2];
const CONTEXT: CommandContext = {
  commandId: 'erase-1',
  correlationId: 'erase-1',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
};
const EVE = { kind: 'user', userId: 'eve' } as const;

interface Town {
  readonly stored: MemoryEvents;
  readonly keys: MemoryKeys;
  readonly subjects: Subjects;
  readonly removed: { records: string[]; derived: number };
  /** What the erasure works on; `tick` is called before and after each change that it makes. */
  deps(tick?: () => void): ErasureDeps;
}

/**
 * Eve has had two numbers; the first is Ann's by now, and got a gift while it was Eve's. She bought for Ann, and Ann for
 * her.
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
      ['GiftsPurchased', { transaction_id: id, buyer_id, receivers: [receiver], payment_reference: 'own' }],
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
    deps: (tick = () => undefined) => {
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
        remove: ticking(keys.remove.bind(keys)),
        putErasure: ticking(keys.putErasure.bind(keys)),
      };
      // Each process has a memory of its own.
      const own = memorySubjects(keys, (name) => lookup(name as PersonName));
      const log = encryptedEvents(stored, own, RULES);
      const watched: EventStore = { ...log, append: ticking(log.append.bind(log)) };
      return {
        events: watched,
        fencedEvents: encryptedEvents(stored, { ...own, secrets: own.secretsForErasure }, RULES),
        keys: store,
        subjects: own,
        hash,
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
    data: { transaction_id: 't-slow', buyer_id: 'eve', receivers: [{}], payment_reference: 'own' },
  });
  try {
    await erasePerson(made.deps(), EVE, CONTEXT, 'asked for it');
    assert.unreachable();
  } catch (error) {
    assert.instance(error, ErasureWaitsError);
    assert.equal((error as ErasureWaitsError).waitsFor, ['the payment of transaction t-slow']);
  }
  assert.ok(made.keys.rows.size > LEFT.length, 'nothing is removed yet');
  assert.equal(await made.subjects.find([usernameSubject('eve@person.example')]), [undefined]);
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
  await finishErasures(made.deps(), () => later, { signal: ending.signal, onTrouble: () => ending.abort() });
  await isErased(made);
});

test('finishes other erasures while one fails', async () => {
  const made = await town();
  const at = '2026-05-04T11:00:00.000Z';
  const left = { reason: 'asked for it', by: { user: 'sue' }, at };
  await storeErasure(made.keys, { id: 'A'.repeat(22), person: { kind: 'user', userId: 'ann' }, ...left });
  await storeErasure(made.keys, { id: 'B'.repeat(22), person: EVE, ...left });
  const deps = made.deps();
  const failing: ErasureDeps = {
    ...deps,
    fencedEvents: {
      read: async (stream, options) => {
        if (stream === 'user-ann') throw new Error('altered');
        return deps.fencedEvents.read(stream, options);
      },
    },
  };
  const ending = new AbortController();
  const told: (Error | undefined)[] = [];
  const onTrouble = (error: Error | undefined): void => {
    told.push(error);
    ending.abort();
  };
  await finishErasures(failing, () => CONTEXT.now, { signal: ending.signal, onTrouble });
  assert.is(told[0]?.message, 'altered');
  assert.ok(made.stored.log.some(({ stream, type }) => stream === 'user-eve' && type === 'PersonErased'));
});

test('repeats in an older log the erasure of a number, and of no user who is not there', async () => {
  const made = await town();
  const done = { reason: 'asked for it', by: { user: 'sue' }, at: CONTEXT.now, done_at: CONTEXT.now };
  const phoneId = 'N'.repeat(22);
  await storeErasure(made.keys, { id: 'A'.repeat(22), person: { kind: 'number', phoneId }, ...done });
  await storeErasure(made.keys, { id: 'B'.repeat(22), person: { kind: 'user', userId: 'later' }, ...done });
  const { events, keys } = made.deps();
  assert.is(await reapplyToLog({ events, keys }, CONTEXT.now), 1);
  assert.is(await reapplyToLog({ events, keys }, CONTEXT.now), 0);
  const erased = made.stored.log.filter(({ type }) => type === 'PersonErased');
  assert.equal(
    erased.map(({ stream }) => stream),
    [`phone-${phoneId}`],
  );
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
