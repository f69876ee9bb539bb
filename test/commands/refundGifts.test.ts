import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import { listRefunds, refundGifts, type RefundOrder, type Refunding } from '../../src/commands/refundGifts.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { type PurchaseEvent, transactionStream } from '../../src/domain/purchase/events.js';
import { issueGifts } from '../../src/domain/purchase/decisions.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { refusal } from '../support/assertions/rejects.js';
import { FOR_EVER_MS } from '../support/assertions/until.js';
import { giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';

const test = suite('refunding gifts');
const TRANSACTION = transactionStream('t1');
const [GIFT = '', OTHER = ''] = deriveGiftIds(SEED, 2).map((ids) => ids.gift_id);
const context = (more: Partial<CommandContext> = {}): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-03-01T00:00:00.000Z',
  ...more,
});
const order = (more: Partial<RefundOrder> = {}): RefundOrder => ({
  transactionId: 't1',
  giftIds: [GIFT],
  voided: false,
  reason: 'sold in error',
  ...more,
});

const bought = giftsPurchased({ total: 700, receivers: [{}, {}] });
const charged: PurchaseEvent = { type: 'PaymentCharged', data: { amount: 700, provider: 'p', charge_id: 'c' } };
const voucher = {
  type: 'VoucherAssigned',
  data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 's', expires_at: '2027-01-01T00:00:00.000Z' },
};

/** A log with one purchase of two gifts that is paid for. Nobody works on refunds. */
function installation(...then: readonly PurchaseEvent[]): MemoryEvents {
  const events = memoryEvents();
  events.given(TRANSACTION, bought, charged, ...then);
  return events;
}
const ask = async (events: MemoryEvents, more: Partial<RefundOrder> = {}): Promise<Refunding> =>
  refundGifts(events, context(), order(more), { ms: 0 });
const requests = (events: MemoryEvents): unknown[] =>
  events.log.filter(({ type }) => type === 'RefundRequested').map(({ data }) => data);

test('asks for a refund of gifts, issued or not', async () => {
  const events = installation();
  const { refund, position, replayed } = await ask(events);
  assert.deepEqual(requests(events), [
    { refund_id: refund.id, gift_ids: [GIFT], voided: false, reason: 'sold in error' },
  ]);
  assert.deepEqual(refund, {
    id: refund.id,
    status: 'requested',
    giftIds: [GIFT],
    kept: {},
    amount: 0,
    provider: null,
    ref: null,
    code: null,
  });
  assert.deepEqual([position, replayed], [events.log.at(-1)?.position, false]);
  await assert.rejects(ask(events), refusal('gift_already_refunded'));
});

test('asks for nothing more when the command is repeated, whatever became of its gifts', async () => {
  const events = installation();
  const mine = context();
  const first = await refundGifts(events, mine, order(), { ms: 0 });
  for (const { giftId, event } of issueGifts(bought.data, '2026-01-01T00:00:00.000Z'))
    events.given(giftStream(giftId), event, { type: 'GiftCancelled', data: { reason: 'other' } });
  const again = await refundGifts(events, mine, order(), { ms: 0 });
  assert.deepEqual([again.replayed, again.refund], [true, first.refund]);
  assert.equal(requests(events).length, 1);
});

test('refuses missing and unrefundable gifts before the first append', async () => {
  const refuses = async (code: string, events: MemoryEvents, more: Partial<RefundOrder> = {}): Promise<void> => {
    await assert.rejects(ask(events, more), refusal(code));
    assert.deepEqual(requests(events), []);
  };
  const withLife = (...life: readonly { readonly type: string; readonly data: object }[]): MemoryEvents => {
    const events = installation();
    for (const { giftId, event } of issueGifts(bought.data, '2026-01-01T00:00:00.000Z'))
      events.given(giftStream(giftId), event, ...(giftId === GIFT ? life : []));
    return events;
  };
  await refuses('transaction_not_found', installation(), { transactionId: 't2' });
  await refuses('gift_not_in_transaction', installation(), { giftIds: ['ff'.repeat(9)] });
  await refuses('gift_code_out', withLife(voucher));
  await refuses('gift_code_out', withLife(voucher), { giftIds: [OTHER, GIFT] });
  await refuses('gift_already_cancelled', withLife({ type: 'GiftCancelled', data: { reason: 'other' } }));
  assert.equal((await ask(withLife(voucher), { voided: true })).refund.status, 'requested');
  assert.equal((await ask(withLife(voucher), { giftIds: [OTHER] })).refund.status, 'requested');
  const disputed = withLife();
  disputed.given(TRANSACTION, {
    type: 'DisputeOpened',
    data: { provider: 'p', dispute_id: 'dp', amount: 700, reason: 'fraudulent' },
  });
  await refuses('gift_disputed', disputed);
});

test('waits until the money is refunded, and reads only new events', async () => {
  const events = installation();
  const mine = context();
  const { id } = (await refundGifts(events, mine, order(), { ms: 0 })).refund;
  const steps: PurchaseEvent[] = [
    {
      type: 'RefundStarted',
      data: {
        refund_id: id,
        attempt: 1,
        gift_ids: [GIFT],
        kept: {},
        amount: 350,
        provider: 'p',
        charge_id: 'c',
        payment_reference: 'pm',
      },
    },
    {
      type: 'GiftsRefunded',
      data: { refund_id: id, attempt: 1, gift_ids: [GIFT], amount: 350, provider: 'p', refund_ref: 're' },
    },
  ];
  const from: (number | undefined)[] = [];
  const read: typeof events.read = async (stream, options = {}) => {
    // After each look at which there was nothing new, the next step is done.
    if (options.from !== undefined && options.from === from.at(-1)) events.given(TRANSACTION, ...steps.splice(0, 1));
    from.push(options.from);
    return events.read(stream, options);
  };
  const { refund, position } = await refundGifts({ ...events, read }, mine, order(), { ms: 10_000 });
  assert.deepEqual([refund.status, refund.giftIds, refund.amount, refund.ref], ['refunded', [GIFT], 350, 're']);
  assert.equal(position, events.log.at(-1)?.position);
  assert.deepEqual(from, [undefined, 0, 3, 3, 4, 4]);
});

test('ends the wait by its time or its signal, with the last position that was read', async () => {
  const events = installation();
  const mine = context();
  const began = performance.now();
  const late = await refundGifts(events, mine, order(), { ms: 120 });
  assert.ok(performance.now() - began >= 120);
  assert.deepEqual([late.refund.status, late.position], ['requested', events.log.at(-1)?.position]);
  const leaving = new AbortController();
  setTimeout(() => leaving.abort(), 20);
  const left = await refundGifts(events, mine, order(), { ms: FOR_EVER_MS, signal: leaving.signal });
  assert.deepEqual([left.refund.status, left.replayed, leaving.signal.aborted], ['requested', true, true]);
});

test('lists refunds in order of time, each with what is known of it', async () => {
  const started = { attempt: 1, gift_ids: [OTHER], kept: {}, amount: 350, provider: 'p', charge_id: 'c' };
  const answered = { attempt: 1, gift_ids: [OTHER], amount: 350, provider: 'p' };
  const request = (refund_id: string): PurchaseEvent => ({
    type: 'RefundRequested',
    data: { refund_id, gift_ids: [GIFT], voided: false, reason: 'x' },
  });
  const start = (refund_id: string): PurchaseEvent => ({
    type: 'RefundStarted',
    data: { refund_id, ...started, payment_reference: 'pm' },
  });
  const events = installation(
    request('requested'),
    start('started'),
    start('refunded'),
    { type: 'GiftsRefunded', data: { refund_id: 'refunded', ...answered, refund_ref: 're_1' } },
    start('refused'),
    { type: 'RefundRefused', data: { refund_id: 'refused', attempt: 1, amount: 350, provider: 'p', code: 'closed' } },
    { type: 'NothingRefunded', data: { refund_id: 'nothing', kept: { redeemed: [GIFT] } } },
  );
  const none = { giftIds: [], kept: {}, amount: 0, provider: null, ref: null, code: null };
  const money = { ...none, giftIds: [OTHER], amount: 350, provider: 'p' };
  assert.deepEqual(await listRefunds(events, 't1'), [
    { ...none, id: 'requested', status: 'requested', giftIds: [GIFT] },
    { ...money, id: 'started', status: 'started' },
    { ...money, id: 'refunded', status: 'refunded', ref: 're_1' },
    { ...money, id: 'refused', status: 'refused', code: 'closed' },
    { ...none, id: 'nothing', status: 'nothing', kept: { redeemed: [GIFT] } },
  ]);
  await assert.rejects(listRefunds(events, 't2'), refusal('transaction_not_found'));
});

test('requests a refund of all gifts that are left, and tells it from earlier ones', async () => {
  const nothing: PurchaseEvent = { type: 'NothingRefunded', data: { refund_id: 'earlier', kept: {} } };
  const events = installation(nothing);
  const { giftIds: _, ...whole } = order();
  const { refund } = await refundGifts(events, context(), whole, { ms: 0 });
  assert.deepEqual([refund.status, refund.giftIds], ['requested', [GIFT, OTHER]]);
});

test('takes fifty refunds of a purchase that come to nothing', async () => {
  const nothing = (n: number): PurchaseEvent => ({ type: 'NothingRefunded', data: { refund_id: `r${n}`, kept: {} } });
  const most = Array.from({ length: 49 }, (_, n) => nothing(n));
  assert.equal((await ask(installation(...most))).refund.status, 'requested');
  await assert.rejects(ask(installation(...most, nothing(49))), refusal('supported_too_often'));
});

test.run();
