import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  type PurchaseDeps,
  purchaseGifts,
  type PurchaseRequest,
  transactionIdOf,
} from '../../src/commands/purchaseGifts.js';
import { Refusal } from '../../src/domain/refusal.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { phoneSubject } from '../../src/domain/personalFields.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { openText } from '../../src/runtime/personal/sealedTexts.js';
import { memoryKeys } from '../support/engines/memoryKeys.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';
import { buy, context, installation, latte, method, subjects, wanted } from '../support/fixtures/purchasing.js';
import { refusal } from '../support/assertions/rejects.js';

const test = suite('purchasing');

test('refuses unknown, retired and foreign payment methods, and products that are not sold', async () => {
  const refuses = async (code: string, ...of: Parameters<typeof installation>): Promise<void> => {
    const at = installation(...of);
    await assert.rejects(buy(at), refusal(code));
    assert.deepEqual(at.events.log, []);
  };
  await refuses('invalid_payment_reference', {});
  await refuses('invalid_payment_reference', { 'paymentMethod-pm': method({ active: false }) });
  await refuses('cannot_use_payment_method', { 'paymentMethod-pm': method({ users: ['bob'] }) });
  await refuses('invalid_product', undefined, false);
});

test('charges a card 0 or 0.30 to 999,999.99 pounds, and a wallet any amount', async () => {
  const priced = (sale_price: number, kind = 'card'): ReturnType<typeof installation> => {
    const at = installation({ 'paymentMethod-pm': method({ kind }) });
    const catalogue = {
      current: () => ({ products: new Map([['latte', { ...latte, sale_price }]]), sellable: () => true }),
    };
    return { ...at, deps: { ...at.deps, catalogue } as unknown as PurchaseDeps };
  };
  const many = (count: number): Partial<PurchaseRequest> => ({ receivers: Array.from({ length: count }, () => ({})) });
  for (const [price, count, code] of [
    [20, 1, 'amount_too_small'],
    [29, 1, 'amount_too_small'],
    [100_000_000, 1, 'amount_too_large'],
    [10_000, 10_000, 'amount_too_large'],
  ] as const) {
    const at = priced(price);
    await assert.rejects(buy(at, many(count)), refusal(code), `${count} for ${price}`);
    assert.deepEqual(at.events.log, []);
    assert.equal((await buy(priced(price, 'wallet'), many(count))).total, price * count);
  }
  for (const [price, count] of [
    [0, 1],
    [30, 1],
    [20, 2],
    [99_999_999, 1],
  ] as const)
    assert.equal((await buy(priced(price), many(count))).total, price * count);
});

test('sells gifts at the product’s price, valid for its days from the day of purchase in UTC', async () => {
  const { expires_on, total, receivers } = await buy(installation());
  assert.deepEqual({ expires_on, total, receivers }, { expires_on: '2026-03-30', total: 350, receivers: [{}] });
  assert.equal((await buy(installation(), { receivers: [{}, {}, {}] })).total, 1050);
});

test('derives gift ids from a seed of 256 random bits alone', async () => {
  const [first, second] = [await buy(installation()), await buy(installation())];
  for (const { seed } of [first, second]) assert.match(seed, /^[0-9a-f]{64}$/);
  assert.notEqual(first.seed, second.seed);
  assert.match(first.transaction_id, /^[0-9a-f]{32}$/);
});

test('stores no number and no message in the clear, and refuses missing and inactive users', async () => {
  const people = {
    'paymentMethod-pm': method(),
    'user-bob': { entry: 'user', active: true, roles: [] },
    'user-zoe': { entry: 'user', active: false, roles: [] },
  };
  const of = [{ phone_number: '07700 900123' }, { user_id: 'bob' }, { phone_number: '+447700900123' }, {}];
  const { receivers, message } = await buy(installation(people), { receivers: of });
  const [phone_id = ''] = await subjects.ids([phoneSubject('+447700900123')]);
  assert.deepEqual(receivers, [{ phone_id }, { user_id: 'bob' }, { phone_id }, {}]);
  assert.equal((await subjects.secrets([phone_id])).get(phone_id)?.toString(), '+447700900123');
  assert.equal(await openText(subjects, message), 'Hi');
  assert.ok(!message.includes('Hi'));
  assert.equal((await buy(installation(), { message: '' })).message, '');
  for (const user_id of ['zoe', 'nobody'])
    await assert.rejects(buy(installation(people), { receivers: [{ user_id }] }), refusal('receiver_not_found'));
  await assert.rejects(
    buy(installation(people), { receivers: [{ phone_number: '12' }] }),
    refusal('invalid_phone_number'),
  );
});

test('names the field that is refused, and the receiver in it', async () => {
  const people = { 'paymentMethod-pm': method(), 'user-bob': { entry: 'user', active: true, roles: [] } };
  const refused = async (request: Partial<PurchaseRequest>, field: string): Promise<void> => {
    const at = installation(people);
    await assert.rejects(buy(at, request), (error: unknown) => error instanceof Refusal && error.field === field);
    assert.deepEqual(at.events.log, []);
  };
  await refused({ payment_reference: 'other' }, 'payment_reference');
  await refused({ product_id: 'tea' }, 'product_id');
  await refused({ receivers: [{ user_id: 'bob' }, { user_id: 'eve' }] }, 'receivers[1].user_id');
  await refused({ receivers: [{}, { phone_number: '12' }] }, 'receivers[1].phone_number');
  await refused({ send_at: '2026-03-02T09:00:00Z' }, 'send_at');
  await refused({ send_at: '2026-03-02T09:00:00Z', receivers: [{}, {}] }, 'send_at');
  await refused({ send_at: '2020-03-02T09:00:00Z', receivers: [{ user_id: 'bob' }] }, 'send_at');
});

test('sends at the time that is named, and stores the caller’s reference', async () => {
  const people = { 'paymentMethod-pm': method(), 'user-bob': { entry: 'user', active: true, roles: [] } };
  const at = installation(people);
  const bought = await buy(at, {
    receivers: [{ user_id: 'bob' }],
    send_at: '2026-03-02T10:00:00+01:00',
    reference_id: 'order 7',
  });
  assert.deepEqual([bought.send_at, bought.reference_id], ['2026-03-02T09:00:00.000Z', 'order 7']);
  const receivers = [{}, { phone_number: '07700 900123' }];
  assert.equal((await buy(at, { receivers, send_at: '2026-03-02T09:00:00Z' })).send_at, '2026-03-02T09:00:00.000Z');
  const plain = await buy(at, { receivers: [{}] });
  assert.deepEqual(['send_at' in plain, 'reference_id' in plain], [false, false]);
});

test('takes accounts from the log that the read model lacks, or shows as they were', async () => {
  const people = { 'paymentMethod-pm': method(), 'user-bob': { active: true, roles: [], id: 'bob', username: 'bob' } };
  const at = installation(people);
  for (const shown of [undefined, method({ active: false }), method({ users: [] })]) {
    const accounts = { get: async () => shown, getMany: async () => [undefined] };
    const deps = { ...at.deps, accounts } as unknown as PurchaseDeps;
    await buy({ ...at, deps }, { receivers: [{ user_id: 'bob' }] });
  }
  assert.equal(at.events.log.length, 3);
});

test('waits for a charge’s outcome, and not for one that waits for its buyer or is there', async () => {
  const pending = { provider: 'p', payment_id: 'pi', action: 'redirect', until: '2026-03-01T00:00:00.000Z' };
  const charged = { type: 'PaymentCharged', data: { amount: 350, provider: 'p', charge_id: 'ch_1' } };
  for (const [meanwhile, waits, status] of [
    [[], 1, 'charged'],
    [[charged], 0, 'charged'],
    [[{ type: 'PaymentAuthenticationRequired', data: pending }], 0, 'pending'],
  ] as const) {
    const at = installation();
    const mine = context();
    const stream = transactionStream(transactionIdOf(mine));
    let waited = 0;
    const outcomes = {
      watch() {
        at.events.given(stream, ...meanwhile);
        const settled = async (ms: number): Promise<boolean> => {
          assert.equal(ms, 700);
          waited += 1;
          at.events.given(stream, charged);
          return true;
        };
        return { settled, end: () => undefined };
      },
    };
    const deps = { ...at.deps, outcomes, chargeWaitMs: 700 } as unknown as PurchaseDeps;
    const { state, position, replayed } = await purchaseGifts(deps, 'ann', mine, wanted);
    assert.deepEqual([waited, state.status, replayed], [waits, status, false]);
    assert.equal(position, at.events.log.at(-1)?.position);
  }
});

test('refuses a purchase whose data key is erased at this moment, and appends nothing', async () => {
  const { deps, events } = installation();
  const erased = { ...deps.subjects, secrets: async () => new Map<string, Buffer>() };
  const mine = context({ bodyHash: 'a' });
  for (const request of [wanted, { ...wanted, message: '', receivers: [{ phone_number: '07700 900123' }] }])
    await assert.rejects(purchaseGifts({ ...deps, subjects: erased }, 'ann', mine, request), UnavailableError);
  assert.deepEqual(events.log, []);
});

test('makes a data key only for a purchase that has something to seal', async () => {
  for (const [request, hashed, keys] of [
    [{ message: '', receivers: [{ phone_number: '07700 900123' }] }, {}, 1],
    [{ message: '', receivers: [{ phone_number: '07700 900123' }] }, { bodyHash: 'a' }, 2],
    [{ message: '', receivers: [{}] }, { bodyHash: 'a' }, 0],
    [{ message: 'Hi', receivers: [{}] }, {}, 1],
  ] as const) {
    const store = memoryKeys();
    const { deps } = installation();
    await purchaseGifts({ ...deps, subjects: memorySubjects(store) }, 'ann', context(hashed), {
      ...wanted,
      ...request,
    });
    assert.equal(store.rows.size, keys, JSON.stringify([request, hashed]));
  }
});

test('reads no account in the log that the read model shows as it must be', async () => {
  const people = { 'paymentMethod-pm': method(), 'user-bob': { entry: 'user', active: true, roles: [] } };
  const at = installation(people);
  const read: string[] = [];
  const { events } = at.deps;
  const watched = {
    ...events,
    read: async (...of: Parameters<typeof events.read>) => (read.push(of[0]), events.read(...of)),
  };
  await buy({ ...at, deps: { ...at.deps, events: watched } }, { receivers: [{ user_id: 'bob' }] });
  assert.deepEqual(
    read.filter((stream) => !stream.startsWith('transaction-')),
    [],
  );
});

test.run();
