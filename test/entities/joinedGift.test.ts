import { NO_TEXT } from '../../src/lib/seal.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findGift, giftAfter, type GiftModels, joinedGift, joinGifts } from '../../src/entities/joinedGift.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import type { PhoneDocument } from '../../src/projections/accounts.js';
import type { GiftDocument } from '../../src/projections/gifts.js';
import type { TransactionDocument } from '../../src/projections/transactions.js';

const test = suite('gifts joined with whose they are');

const day = (n: number): string => `2026-03-0${n}T12:00:00.000Z`;
const transaction: TransactionDocument = {
  buyer_id: 'ann',
  seed: '0',
  count: 3,
  product_id: 'latte',
  brand_id: 'bean',
  sale_price: 100,
  total: 300,
  message: NO_TEXT,
  expires_on: '2027-03-01',
  payment: 'charged',
  created_at: day(2),
  updated_at: day(2),
};
const giftTo = (receiver: GiftDocument['receiver'], more: Partial<GiftDocument> = {}): GiftDocument => ({
  transaction_id: 't',
  index: 0,
  message_id: 'm',
  receiver,
  updated_at: day(2),
  ...more,
});
const phone = (...holders: PhoneDocument['holders']): PhoneDocument => ({ entry: 'phone', holders });
const event = (type: string, data: object, revision: number, at: string): RecordedEvent =>
  ({
    position: `${revision}`,
    stream: 'gift-g',
    revision,
    type,
    id: `e${revision}`,
    at,
    data,
    metadata: { commandId: 'c', correlationId: 'c', by: {} },
  }) as RecordedEvent;

test("gives a number's gift to the number's owner on the day it was sent there", () => {
  const moved = phone({ user_id: 'bob', from: day(1), to: day(4) }, { user_id: 'cat', from: day(4) });
  assert.is(joinedGift('g', giftTo({ phone_id: 'h' }), transaction, moved).owner, 'bob');
  assert.is(joinedGift('g', giftTo({ phone_id: 'h' }, { reassigned_at: day(5) }), transaction, moved).owner, 'cat');
  assert.is(joinedGift('g', giftTo({ phone_id: 'h' }), transaction, undefined).owner, undefined);
});

test('each gift of a purchase is its own number’s holder’s', async () => {
  const holders = new Map([
    ['phone-b', phone({ user_id: 'bob', from: day(1) })],
    ['phone-c', phone({ user_id: 'cat', from: day(1) })],
  ]);
  const requested: (readonly string[])[] = [];
  const accounts = {
    getMany: async (ids: readonly string[]) => (requested.push(ids), ids.map((id) => holders.get(id))),
  } as GiftModels['accounts'];
  const receivers = [
    { phone_id: 'b' },
    {},
    { phone_id: 'nobody' },
    { phone_id: 'c' },
    { user_id: 'dan' },
    { phone_id: 'b' },
  ];
  const joined = await joinGifts(
    { accounts },
    transaction,
    receivers.map((receiver, index) => ({ id: `g${index}`, gift: giftTo(receiver, { index }) })),
  );
  assert.equal(
    joined.map(({ id, owner }) => [id, owner]),
    [
      ['g0', 'bob'],
      ['g1', 'ann'],
      ['g2', undefined],
      ['g3', 'cat'],
      ['g4', 'dan'],
      ['g5', 'bob'],
    ],
  );
  assert.equal(requested, [['phone-b', 'phone-nobody', 'phone-c']]);
});

test('while one read model knows of a gift and the other not yet of its purchase there is none', async () => {
  const models = {
    gifts: { get: async () => giftTo({ phone_id: 'h' }) },
    transactions: { get: async () => undefined },
    accounts: { get: async () => phone() },
  } as unknown as GiftModels;
  assert.is(await findGift(models, 'g'), undefined);
});

/** A read model and a log of which only these are there: the read model of accounts lacks the number. */
const having = (
  moves: readonly RecordedEvent[],
  known: TransactionDocument | undefined,
): Parameters<typeof giftAfter>[0] =>
  ({
    transactions: { get: async () => known },
    accounts: { get: async () => undefined },
    events: { read: async (stream: string) => (stream === 'phone-h' ? moves : []) },
  }) as unknown as Parameters<typeof giftAfter>[0];
const moved = (type: string, user_id: string, revision: number, at: string): RecordedEvent => ({
  ...event(type, { user_id }, revision, at),
  stream: 'phone-h',
});
const issued = (receiver: GiftDocument['receiver']): RecordedEvent =>
  event('GiftIssued', { transaction_id: 't', index: 0, message_id: 'm', receiver }, 0, day(2));

test('has the receiver and owner at the time of an event, despite later reassignments', async () => {
  const claimed = event('GiftClaimed', { user_id: 'cat' }, 1, day(3));
  const { gift, owner } = await giftAfter(having([], transaction), 'g', [issued({}), claimed]);
  assert.equal(
    [gift.receiver, gift.claimed_by, gift.reassigned_at, gift.updated_at, owner],
    [{}, 'cat', undefined, day(3), 'cat'],
  );
  const given = event('GiftReassigned', { receiver: { phone_id: 'h' } }, 2, day(5));
  const moves = [
    moved('PhoneTaken', 'bob', 0, day(1)),
    moved('PhoneGivenUp', 'bob', 1, day(4)),
    moved('PhoneTaken', 'eve', 2, day(4)),
  ];
  assert.is((await giftAfter(having(moves, transaction), 'g', [issued({}), claimed, given])).owner, 'eve');
});

test('has the owner of the number as the log has it, however late the read model of accounts is', async () => {
  const models = having([moved('PhoneTaken', 'bob', 0, day(1))], transaction);
  assert.is((await giftAfter(models, 'g', [issued({ phone_id: 'h' })])).owner, 'bob');
});

test('reads the purchase as of the event, however late the read model is', async () => {
  const requested: unknown[] = [];
  const models = having([], transaction);
  const { get } = models.transactions;
  (models.transactions as { get: unknown }).get = async (...of: Parameters<typeof get>) => (
    requested.push(of),
    get(...of)
  );
  await giftAfter(models, 'g', [issued({}), event('GiftReassigned', { receiver: { phone_id: 'h' } }, 7, day(3))]);
  assert.equal(requested, [['t', '7']]);
});

test('a stream that no gift was issued to, or that names no purchase, is no gift', async () => {
  for (const history of [[], [issued({})]]) {
    try {
      await giftAfter(having([], undefined), 'g', history);
      assert.unreachable();
    } catch (error) {
      assert.match((error as Error).message, history.length === 0 ? /not issued/ : /never made/);
    }
  }
});

test.run();
