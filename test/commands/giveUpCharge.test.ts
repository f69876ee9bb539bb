import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import type { ParkedDeps } from '../../src/commands/findParked.js';
import { giveUpCharge, discardParked } from '../../src/commands/parkedWork.js';
import { type DomainEvent, fold, type Happened } from '../../src/domain/decider.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { parkedId } from '../../src/domain/parked.js';
import { walletAggregate, type WalletEvent, walletStream } from '../../src/domain/wallet.js';
import { walletPayments } from '../../src/processors/purchase/walletPayments.js';
import { openWriter } from '../../src/processors/runner/writing.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { giftIssued, giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';

const test = suite('discarding a parked charge');
const context = (commandId: string = randomUUID()): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
});
const STREAM = 'transaction-t1';
const AMOUNT = { transaction_id: 't1', amount: 250 };
const started = (kind: 'card' | 'wallet'): DomainEvent => ({
  type: 'ChargeStarted',
  data: { amount: 250, payment_reference: 'pm', kind, prepaid: kind === 'wallet' },
});
const debited: DomainEvent = { type: 'WalletDebited', data: AMOUNT };

/** A purchase whose charge, or another step, is parked, and what its wallet has. */
function parked(then: readonly DomainEvent[], wallet: readonly DomainEvent[] = [], step = 'charge'): MemoryEvents {
  const events = memoryEvents();
  const bought = { transaction_id: 't1', seed: 'ab'.repeat(32), payment_reference: 'pm', total: 250, receivers: [{}] };
  events.given(STREAM, { type: 'GiftsPurchased', data: bought }, ...then);
  events.given(walletStream('pm'), ...wallet);
  const work = { entity: 't1', transaction_id: 't1', step, cause: 'down', event_id: 'e', times: 1 };
  events.given('parked-purchase', { type: 'WorkParked', data: work });
  return events;
}
const discard = async (events: MemoryEvents, commandId?: string): Promise<string[]> => {
  const deps = { events, parked: { getMany: async () => [] }, gifts: { get: async () => undefined } };
  await discardParked(deps as unknown as ParkedDeps, 't1', context(commandId), 'seen to');
  return events.log.slice(events.log.findLastIndex(({ type }) => type === 'WorkParked') + 1).map(({ type }) => type);
};

test('declines the charge of a card, and leaves wallets alone', async () => {
  const events = parked([started('card')], [{ type: 'WalletToppedUp', data: { top_up_id: 'u', amount: 900 } }]);
  assert.deepEqual(await discard(events), ['WorkDiscarded', 'PaymentDeclined']);
  assert.deepEqual(events.log.at(-1)?.data, { provider: 'support', code: 'discarded' });
});

test('credits a wallet that had paid, once', async () => {
  const topUp = { type: 'WalletToppedUp', data: { top_up_id: 'u', amount: 900 } };
  const events = parked([started('wallet')], [topUp, debited]);
  const expected = ['WorkDiscarded', 'WalletCredited', 'PaymentDeclined'];
  assert.deepEqual(await discard(events, 'k'), expected);
  assert.deepEqual(events.log.at(-2)?.data, { ...AMOUNT, cause: 'discarded-t1' });
  assert.deepEqual(await discard(events, 'k'), expected, 'the same command again');
  assert.deepEqual(await discard(events), expected, 'another one');
});

test('charges nothing for a credited debit where the discard was killed before it declined the charge', async () => {
  const topUp = { type: 'WalletToppedUp', data: { top_up_id: 'u', amount: 900 } };
  const events = parked([started('wallet')], [topUp, debited]);
  const append: MemoryEvents['append'] = async (stream, ...rest) => {
    if (stream === STREAM) throw new Error('killed');
    return events.append(stream, ...rest);
  };
  await assert.rejects(giveUpCharge({ ...events, append }, 't1', context()), /killed/);
  // A process manager to whom the feed has not shown the parking yet.
  const { pay } = walletPayments(events, openWriter(events, Date.now));
  const cause = { id: 'e', at: '', revision: 0, correlationId: 'r' };
  assert.equal(await pay('pm', 't1', 250, { commandId: 'charge-t1', cause }), 'refused');
  const wallet = (await events.read(walletStream('pm'))) as unknown as Happened<WalletEvent>[];
  assert.equal(fold(walletAggregate, wallet).balance, 900);
  await giveUpCharge(events, 't1', context());
  assert.equal(events.log.at(-1)?.type, 'PaymentDeclined');
});

test('keeps a wallet that has not paid from paying later', async () => {
  const topUp = { type: 'WalletToppedUp', data: { top_up_id: 'u', amount: 900 } };
  assert.deepEqual(await discard(parked([started('wallet')], [topUp])), [
    'WorkDiscarded',
    'WalletDebitRefused',
    'PaymentDeclined',
  ]);
  assert.deepEqual(await discard(parked([], [topUp])), ['WorkDiscarded', 'WalletDebitRefused', 'PaymentDeclined']);
  assert.deepEqual(await discard(parked([])), ['WorkDiscarded', 'PaymentDeclined'], 'a card’s reference has no wallet');
});

test('declines a replacement, unless its gift was given up for it', async () => {
  const replaced: DomainEvent = {
    type: 'GiftReplaced',
    data: { replaced_by: { gift_id: 'h', transaction_id: 't1' }, reason: 'lost' },
  };
  const of = (...then: readonly DomainEvent[]): MemoryEvents => {
    const events = parked([]);
    const replaces = { gift_id: 'g', transaction_id: 't0' };
    Object.assign(events.log[0]?.data ?? {}, { total: 0, payment_reference: '', replaces });
    events.given('gift-g', giftIssued(), ...then);
    return events;
  };
  const kept = of();
  assert.deepEqual((await discard(kept)).slice(-3), ['WorkDiscarded', 'ReplacementDeclined', 'PaymentDeclined']);
  const given = of(replaced);
  assert.deepEqual((await discard(given)).slice(-2), ['WorkDiscarded', 'PaymentCharged']);
  assert.deepEqual(given.log.at(-1)?.data, { amount: 0, provider: 'replacement', charge_id: 'replacement-g' });
});

test('declines a replacement in the stream of its gift, which is issued with that where it was not', async () => {
  const events = parked([]);
  const [gift = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
  const replaces = { gift_id: gift, transaction_id: 't0' };
  Object.assign(events.log[0]?.data ?? {}, { total: 0, payment_reference: '', replaces });
  const paid = { type: 'PaymentCharged', data: { amount: 350, provider: 'p', charge_id: 'c' } };
  events.given('transaction-t0', giftsPurchased({ transaction_id: 't0' }), paid);
  const added = (await discard(events)).filter((type) => type !== 'GiftsPurchased' && type !== 'PaymentCharged');
  assert.deepEqual(added, ['WorkDiscarded', 'GiftIssued', 'ReplacementDeclined', 'PaymentDeclined']);
  assert.deepEqual(
    events.log.slice(-3).map(({ stream }) => stream),
    [`gift-${gift}`, `gift-${gift}`, STREAM],
  );
});

test('decides on each charge of a wallet, and each replacement of a gift, that one command discards', async () => {
  const events = memoryEvents();
  const topUp = { type: 'WalletToppedUp', data: { top_up_id: 'u', amount: 900 } };
  const replaces = { gift_id: 'g', transaction_id: 't0' };
  const ids = ['t1', 't2', 'r1', 'r2'];
  for (const transaction_id of ids) {
    const bought = { transaction_id, seed: SEED, payment_reference: 'pm', total: 250, receivers: [{}] };
    const replacement = transaction_id.startsWith('r') ? { replaces, total: 0, payment_reference: '' } : {};
    events.given(`transaction-${transaction_id}`, { type: 'GiftsPurchased', data: { ...bought, ...replacement } });
  }
  events.given(walletStream('pm'), topUp, debited, {
    type: 'WalletDebited',
    data: { ...AMOUNT, transaction_id: 't2' },
  });
  events.given('gift-g', giftIssued());
  const command = context();
  for (const id of ids.slice(0, 3)) await giveUpCharge(events, id, command);
  events.given('gift-g', {
    type: 'GiftReplaced',
    data: { replaced_by: { gift_id: 'h', transaction_id: 'r2' }, reason: 'lost' },
  });
  await giveUpCharge(events, 'r2', command);
  const credited = events.log.filter(({ type }) => type === 'WalletCredited');
  assert.deepEqual(
    credited.map(({ data }) => (data as { transaction_id?: string }).transaction_id),
    ['t1', 't2'],
  );
  assert.deepEqual(
    ids.map((id) => events.log.findLast(({ stream }) => stream === `transaction-${id}`)?.type),
    ['PaymentDeclined', 'PaymentDeclined', 'PaymentDeclined', 'PaymentCharged'],
  );
});

test('leaves a charge that is settled, and other steps, as they are', async () => {
  const charged = { type: 'PaymentCharged', data: { amount: 250, provider: 'wallet', charge_id: 'w' } };
  assert.deepEqual(await discard(parked([started('wallet'), charged], [debited])), ['WorkDiscarded']);
  assert.deepEqual(await discard(parked([started('card')], [], 'issue')), ['WorkDiscarded']);
  const unknown = memoryEvents();
  await giveUpCharge(unknown, 't1', context());
  assert.deepEqual(unknown.log, []);
});

test('a discard of other work settles no charge', async () => {
  const events = parked([started('card')]);
  const work = { entity: 't1', transaction_id: 't1', step: 'charge', cause: 'down', event_id: 'e', times: 1 };
  events.given('parked-refund', { type: 'WorkParked', data: work });
  const deps = { events, parked: { getMany: async () => [] }, gifts: { get: async () => undefined } };
  await discardParked(deps as unknown as ParkedDeps, parkedId('refund', 't1'), context(), 'seen to');
  assert.deepEqual(
    events.log.slice(-2).map(({ type }) => type),
    ['WorkParked', 'WorkDiscarded'],
  );
});

test.run();
