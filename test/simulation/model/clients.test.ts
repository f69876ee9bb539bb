/** The seeded clients: the same random numbers and answers give the same requests, and all kinds of them. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { PARTS, seededClients } from './clients.js';
import { INSTALLATION, START, refusal } from './handmade.js';
import type { Observation } from './history.js';
import type { Choice } from './known.js';
import { seededRandom } from './random.js';
import { requestOf } from './requests.js';

const test = suite('seeded clients');

/** Requests of one run. Purchases are answered with two gifts, redemptions made, every seventh request gets no answer. */
function run(seed: number, count: number): Choice[] {
  const clients = seededClients({ installation: INSTALLATION, random: seededRandom(seed), parts: PARTS });
  return Array.from({ length: count }, (_, index) => {
    const choice = clients.next();
    clients.learn(index % 7 === 6 ? { ...lostOf(choice), sent: START } : answered(choice, index));
    return choice;
  });
}

const lostOf = (choice: Choice): Omit<Observation, 'sent'> => ({ ...choice, answered: undefined, answer: undefined });

function answered({ client, operation }: Choice, index: number): Observation {
  const times = { client, operation, sent: START + index, answered: START + index };
  if (operation.kind === 'purchase') {
    const gifts = [0, 1].map((gift) => ({ id: `g${index}-${gift}`, shortcode: `S${index}-${gift}` }));
    const body = { data: { id: `t${index}` }, embedded: { gifts } };
    return { ...times, answer: { status: 201, headers: {}, body } };
  }
  if (operation.kind === 'redeem')
    return { ...times, answer: { status: 201, headers: {}, body: { data: { id: `r${index}` } } } };
  const { status, headers = {}, body } = refusal('gift_not_found');
  return { ...times, answer: { status, headers, body } };
}

test('repeats a run by its seed', () => {
  assert.deepEqual(run(3, 200), run(3, 200));
  assert.notDeepEqual(run(3, 200), run(4, 200));
});

test('sends every kind of request, and repeats keys', () => {
  const choices = run(5, 600);
  const counts = new Map<string, number>();
  for (const { operation } of choices) counts.set(operation.kind, (counts.get(operation.kind) ?? 0) + 1);
  for (const kind of [
    'purchase',
    'redeem',
    'unredeem',
    'claim',
    'getGift',
    'listRedemptions',
    'lookUpKey',
    'getTransaction',
  ])
    assert.ok((counts.get(kind) ?? 0) >= 5, `${kind}: ${counts.get(kind)}`);
  const keys = choices.flatMap(({ operation }) => ('key' in operation ? (operation.key ?? []) : []));
  assert.ok(keys.length - new Set(keys).size > 20, 'keys are repeated');
  const orders = choices.flatMap(({ operation }) => (operation.kind === 'purchase' ? [operation] : []));
  for (const one of orders)
    assert.deepEqual(
      one,
      orders.find(({ order }) => order === one.order),
    );
});

test('reads everything and takes up what is open at the end', () => {
  const clients = seededClients({ installation: INSTALLATION, random: seededRandom(1), parts: PARTS });
  const bought = clients.next();
  clients.learn(answered(bought, 0));
  const lostOne: Choice = {
    client: 'till',
    operation: { kind: 'redeem', gift: 'g0-0', location: 'bean-soho', key: 'k' },
  };
  clients.learn({ ...lostOf(lostOne), sent: START });
  assert.deepEqual(clients.takeUpAll(), [lostOne]);
  assert.deepEqual(clients.takeUpAll(), []);
  const counts = new Map<string, number>();
  for (const { operation } of clients.readAll()) counts.set(operation.kind, (counts.get(operation.kind) ?? 0) + 1);
  assert.deepEqual(Object.fromEntries(counts), {
    getGift: 2,
    listRedemptions: 2,
    getTransaction: 1,
    listTransactionGifts: 1,
    lookUpKey: 1,
    listTransactions: 3,
    listGifts: 9,
    listMerchantRedemptions: 3,
    listEvents: 9,
  });
});

test('gives each operation its HTTP request', () => {
  const redeem = requestOf({ kind: 'redeem', gift: 'g 1', shortcode: 'S/1', location: 'here', key: 'k' });
  assert.deepEqual(redeem, {
    method: 'POST',
    path: '/api/v2/gifts/S%2F1/redemptions',
    headers: { 'idempotency-key': 'k', 'content-type': 'application/json' },
    body: { location_id: 'here' },
  });
  const cancel = requestOf({ kind: 'unredeem', gift: 'g1', redemption: 'key:k 1' });
  assert.equal(cancel.path, '/api/v2/gifts/g1/redemptions/key%3Ak%201');
  assert.deepEqual(requestOf({ kind: 'claim', gift: 'g1' }), {
    method: 'POST',
    path: '/api/v2/gifts/g1/claim',
    headers: {},
    body: undefined,
  });
});

test.run();
