import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import { blockGift, TICKET_ID, unblockGift } from '../../src/commands/blockGift.js';
import { disputeCause, supportCause } from '../../src/domain/supportActions.js';
import { supportAction, type SupportDeps } from '../../src/commands/supportAction.js';
import type { CommandContext } from '../../src/commands/transact.js';
import { type GiftEvent, giftStream } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { type PurchaseEvent, transactionStream } from '../../src/domain/purchase/events.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { refusal } from '../support/assertions/rejects.js';
import { giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';

const test = suite('blocking gifts');
const context = (more: Partial<CommandContext> = {}): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-03-01T00:00:00.000Z',
  ...more,
});
const support = { reason: 'stolen card' };

const [GIFT = ''] = deriveGiftIds(SEED, 1).map((ids) => ids.gift_id);
const bought = giftsPurchased();
const charged: PurchaseEvent = { type: 'PaymentCharged', data: { amount: 350, provider: 'p', charge_id: 'c' } };
const declined: PurchaseEvent = { type: 'PaymentDeclined', data: { provider: 'p', code: 'lost_card' } };

/** A log with one purchase, and the read model's answer about its one gift. */
function installation(...then: readonly PurchaseEvent[]): { deps: SupportDeps; events: MemoryEvents } {
  const events = memoryEvents();
  events.given(transactionStream('t1'), bought, ...then);
  const document = {
    transaction_id: 't1',
    index: 0,
    message_id: 'm',
    receiver: {},
    updated_at: '2026-01-01T00:00:00.000Z',
  };
  const gifts = {
    get: async (id: string) => (id === GIFT ? document : undefined),
    reached: async () => true,
  } as unknown as SupportDeps['gifts'];
  return { deps: { events, gifts }, events };
}
const typesOf = (events: MemoryEvents): string[] =>
  events.log.filter(({ stream }) => stream === giftStream(GIFT)).map(({ type }) => type);

test('issues a paid gift and blocks it in one append', async () => {
  const { deps, events } = installation(charged);
  const given = context();
  const { own } = await blockGift(deps, GIFT, given, support);
  assert.deepEqual(typesOf(events), ['GiftIssued', 'GiftBlocked']);
  assert.deepEqual(
    [own.length, own[1]?.data, own[1]?.metadata.by, own[0]?.metadata.commandId],
    [2, { cause: supportCause(), ...support }, { user: 'sue' }, given.commandId],
  );
});

test('blocks once for each cause, and finds the event of a repeated command', async () => {
  const { deps, events } = installation(charged);
  const given = context();
  const first = await blockGift(deps, GIFT, given, support);
  assert.deepEqual((await blockGift(deps, GIFT, context(), support)).own, []);
  const disputed = { cause: disputeCause('dp_1'), reason: 'fraudulent' };
  events.given(giftStream(GIFT), { type: 'GiftBlocked', data: disputed });
  const { own } = await unblockGift(deps, GIFT, context(), { reason: 'found' });
  assert.deepEqual(
    own.map(({ type, data }) => [type, data]),
    [['GiftUnblocked', { cause: 'support', reason: 'found', transaction_id: 't1' }]],
  );
  assert.deepEqual((await unblockGift(deps, GIFT, context(), { reason: 'again' })).own, []);
  const again = await blockGift(deps, GIFT, given, support);
  assert.deepEqual([again.replayed, again.own.map(({ id }) => id)], [true, first.own.map(({ id }) => id)]);
  assert.deepEqual(typesOf(events), ['GiftIssued', 'GiftBlocked', 'GiftBlocked', 'GiftUnblocked']);
  assert.deepEqual(events.log.at(-2)?.data, disputed);
});

test('blocks once for each ticket, names none in its cause, and frees one whose ticket was erased', async () => {
  const { deps, events } = installation(charged);
  const ticket = 'Jones-07700900123';
  const { own } = await blockGift(deps, GIFT, context(), { ticket, reason: 'stolen' });
  const [cause = ''] = own.flatMap(({ data }) => ('cause' in data ? [String(data.cause)] : []));
  assert.match(cause, /^support:[0-9a-f]{20}$/);
  assert.deepEqual((await blockGift(deps, GIFT, context(), { ticket, reason: 'again' })).own, []);
  assert.deepEqual((await unblockGift(deps, GIFT, context(), { ticket: 'T-2', reason: 'found' })).own, []);
  assert.deepEqual((await unblockGift(deps, GIFT, context(), { reason: 'found' })).own, []);
  const [freed] = (await unblockGift(deps, GIFT, context(), { ticket, reason: 'found' })).own;
  assert.deepEqual(freed?.data, { cause, reason: 'found', ticket, transaction_id: 't1' });

  const erased = { cause: supportCause('3f0b8a1de29c4f7d5a6b'), reason: '', ticket: '' };
  events.given(giftStream(GIFT), { type: 'GiftBlocked', data: erased });
  const [again] = (await unblockGift(deps, GIFT, context(), { ticket: '3f0b8a1de29c4f7d5a6b', reason: 'found' })).own;
  assert.deepEqual(again?.data, {
    ...erased,
    reason: 'found',
    ticket: '3f0b8a1de29c4f7d5a6b',
    transaction_id: 't1',
  });
});

test('blocks behind an issue that won the race', async () => {
  const { deps, events } = installation(charged);
  events.beforeAppend = () => {
    events.beforeAppend = () => undefined;
    events.given(giftStream(GIFT), { type: 'GiftIssued', data: { transaction_id: 't1', index: 0, receiver: {} } });
  };
  await blockGift(deps, GIFT, context(), support);
  assert.deepEqual(typesOf(events), ['GiftIssued', 'GiftBlocked']);
});

test('leaves a cancelled gift as it is', async () => {
  const { deps, events } = installation(charged);
  events.given(
    giftStream(GIFT),
    { type: 'GiftIssued', data: { transaction_id: 't1', index: 0, receiver: {} } },
    { type: 'GiftCancelled', data: { reason: 'refunded' } },
  );
  assert.deepEqual((await blockGift(deps, GIFT, context(), support)).own, []);
  assert.deepEqual(typesOf(events), ['GiftIssued', 'GiftCancelled']);
});

test('refuses to block unpaid and unknown gifts, and skips declined ones', async () => {
  await assert.rejects(blockGift(installation().deps, GIFT, context(), support), refusal('gift_not_paid'));
  const { deps, events } = installation(declined);
  assert.deepEqual((await blockGift(deps, GIFT, context(), support)).own, []);
  assert.deepEqual((await unblockGift(deps, GIFT, context(), support)).own, []);
  assert.deepEqual(typesOf(events), []);
  await assert.rejects(blockGift(deps, 'ff'.repeat(9), context(), support), refusal('gift_not_found'));
});

test('blocks a gift for support fifty times, and can end each block', async () => {
  const { deps, events } = installation(charged);
  for (let n = 1; n <= 50; n++) await blockGift(deps, GIFT, context(), { ...support, ticket: `T-${n}` });
  await assert.rejects(
    blockGift(deps, GIFT, context(), { ...support, ticket: 'T-51' }),
    refusal('supported_too_often'),
  );
  for (let n = 1; n <= 50; n++) await unblockGift(deps, GIFT, context(), { ...support, ticket: `T-${n}` });
  assert.equal(typesOf(events).filter((type) => type === 'GiftUnblocked').length, 50);
});

test('a ticket’s id is 1 to 64 letters, digits and signs', () => {
  for (const id of ['T', 'Jones-07700.900_123#2', 'x'.repeat(64)]) assert.match(id, TICKET_ID);
  for (const id of ['', 'a b', ' a', 'a ', 'x'.repeat(65)]) assert.doesNotMatch(id, TICKET_ID);
});

test('counts neither unblocks nor the blocks of disputes against support', async () => {
  const { deps, events } = installation(charged);
  const issued = { type: 'GiftIssued', data: { transaction_id: 't1', index: 0, receiver: {} } };
  events.given(giftStream(GIFT), issued);
  for (let n = 1; n <= 50; n++) {
    const data = { cause: disputeCause(`dp_${n}`), reason: 'fraudulent' };
    const dispute = { commandId: `d${n}`, correlationId: 'c', by: { process: 'dispute' } } as never;
    const block = { id: randomUUID(), type: 'GiftBlocked', data, at: '2026-02-01T00:00:00.000Z', metadata: dispute };
    await events.append(giftStream(GIFT), [block], 'any');
    events.given(giftStream(GIFT), { type: 'GiftUnblocked', data });
  }
  assert.equal((await blockGift(deps, GIFT, context(), support)).own.length, 1);
  assert.equal((await unblockGift(deps, GIFT, context(), support)).own.length, 1);
});

test('counts the reversals of support, and not those of tills', async () => {
  const reversal = (by_support: boolean): GiftEvent => ({
    type: 'GiftUnredeemed',
    data: {
      redemption_id: 'r',
      location_id: 'soho',
      location_merchant_id: 'coffee',
      merchant_id: 'coffee',
      ...(by_support ? { by_support, reason: 'x' } : {}),
    },
  });
  for (const bySupport of [true, false]) {
    const { deps, events } = installation(charged);
    const issued = { type: 'GiftIssued', data: { transaction_id: 't1', index: 0, receiver: {} } };
    events.given(giftStream(GIFT), issued, ...Array.from({ length: 50 }, () => reversal(bySupport)));
    const acted = supportAction(deps, GIFT, context(), () => [reversal(true)]);
    if (bySupport) await assert.rejects(acted, refusal('supported_too_often'));
    else assert.equal((await acted).own.length, 1);
  }
});

test.run();
