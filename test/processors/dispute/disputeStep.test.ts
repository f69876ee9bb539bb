import * as assert from 'uvu/assert';
import { disputeKey, PROVIDER_REFUND_KEY, type ProviderRefundSettled } from '../../../src/domain/purchase/disputes.js';
import { ConflictError, type EventStore } from '../../../src/ports/eventStore.js';
import type { GiftChangeDeps } from '../../../src/processors/purchase/giftChanges.js';
import { settleReversal } from '../../../src/processors/dispute/disputeStep.js';
import { GiveUpError, NotYetError } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { openWriter, RACES } from '../../../src/processors/runner/writing.js';
import { type Bought, logSuite, type TestLog } from '../../support/service/testLog.js';
import { rejects } from '../../support/assertions/rejects.js';

const test = logSuite('a dispute step that another process may have done');

const RETRIED = { id: 'retried', at: '', revision: 0, correlationId: 'c' };

/** Two gifts that are paid for; the provider has given back what one of them cost. */
async function refundedMoney(log: TestLog): Promise<Bought> {
  const bought = await log.buy([{}, {}]);
  const stream = `transaction-${bought.transactionId}`;
  await log.append(stream, 'PaymentCharged', { amount: 500, provider: 'p', charge_id: 'ch_1' });
  await log.append(stream, 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'ch_1',
    amount: 250,
    total: 250,
  });
  return bought;
}

/** Gifts are used, by default both. */
async function redeemed(log: TestLog, { transactionId, giftIds }: Bought, which = giftIds): Promise<void> {
  for (const [index, giftId] of giftIds.entries()) {
    if (!which.includes(giftId)) continue;
    await log.append(`gift-${giftId}`, 'GiftIssued', { transaction_id: transactionId, index, receiver: {} });
    await log.append(`gift-${giftId}`, 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  }
}

/** Does the step. `how`: what an earlier attempt has left to be parked, and the retry that hands it back. */
function settle(
  log: TestLog,
  { transactionId }: Bought,
  key = PROVIDER_REFUND_KEY,
  how: { shortfall?: ProviderRefundSettled['data']; retried?: typeof RETRIED } = {},
  more: Partial<GiftChangeDeps> = {},
): Promise<void> {
  const events = more.events ?? log.events;
  return settleReversal(
    { events, writer: openWriter(events, Date.now), mayAct: () => undefined, ...more },
    transactionId,
    key,
    how.shortfall,
    how.retried,
  );
}

/** The house's log, for one whose first append comes only after this. */
function interrupted(log: TestLog, meanwhile: () => Promise<unknown>): EventStore {
  let before: Promise<unknown> | undefined;
  return {
    ...log.events,
    async append(...args) {
      await (before ??= meanwhile());
      return log.events.append(...args);
    },
  };
}

const settled = async (log: TestLog): Promise<unknown[]> =>
  (await log.all('ProviderRefundSettled')).map(({ data }) => data);
const cancelled = async (log: TestLog): Promise<number> => (await log.all('GiftCancelled')).length;
const ONE = { total: 250, cancelled: 1, vouchered: 0, difference: 0 };
const NONE = { total: 250, cancelled: 0, vouchered: 0, difference: 250 };

test('parks nothing where gifts make up for the money, also on a retry', async ({ log }) => {
  const bought = await refundedMoney(log);
  await settle(log, bought);
  await settle(log, bought, PROVIDER_REFUND_KEY, { retried: RETRIED });
  assert.equal([await settled(log), await cancelled(log)], [[ONE], 1]);
});

test('of several times that money was given back the last one is named as the cause', async ({ log }) => {
  const bought = await refundedMoney(log);
  await log.append(`transaction-${bought.transactionId}`, 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'ch_1',
    amount: 250,
    total: 500,
  });
  await settle(log, bought);
  const last = (await log.all('RefundedAtProvider')).at(-1)?.id;
  assert.equal(
    (await log.all('GiftCancelled', 'ProviderRefundSettled')).map(({ metadata }) => metadata.causationId),
    [last, last, last],
  );
});

test('waits until the charge is recorded', async ({ log }) => {
  const bought = await log.buy([{}]);
  const stream = `transaction-${bought.transactionId}`;
  await log.append(stream, 'DisputeOpened', {
    provider: 'p',
    dispute_id: 'dp_1',
    amount: 250,
    reason: 'fraudulent',
  });
  await log.append(stream, 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'ch_1',
    amount: 250,
    total: 250,
  });
  for (const key of [disputeKey('dp_1'), PROVIDER_REFUND_KEY]) {
    const waits = await rejects(settle(log, bought, key), NotYetError, /charge has not been recorded/);
    assert.ok(waits.mayNeverCome);
  }
  assert.equal([(await log.types(stream)).length, await cancelled(log), await log.all('GiftBlocked')], [3, 0, []]);
});

test('has the event that asked for it as its cause, or the retry of what was answered before', async ({ log }) => {
  const bought = await refundedMoney(log);
  const [used = ''] = bought.giftIds;
  await redeemed(log, bought);
  await rejects(settle(log, bought), GiveUpError, /no unredeemed gift/);
  await log.append(`gift-${used}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await settle(log, bought, PROVIDER_REFUND_KEY, { retried: RETRIED });
  const again = (await log.all('GiftCancelled', 'ProviderRefundSettled')).slice(1);
  assert.equal(
    again.map(({ type, metadata }) => [type, metadata.causationId, metadata.correlationId]),
    ['GiftCancelled', 'ProviderRefundSettled'].map((type) => [type, RETRIED.id, log.correlationId]),
  );
  const disputed = { provider: 'p', dispute_id: 'dp_1', amount: 250, reason: 'fraudulent' };
  await log.append(`transaction-${bought.transactionId}`, 'DisputeOpened', disputed);
  await settle(log, bought, disputeKey('dp_1'), { retried: RETRIED });
  const [opened] = await log.all('DisputeOpened');
  for (const { metadata } of await log.all('GiftBlocked', 'DisputeSettled'))
    assert.is(metadata.causationId, opened?.id);
});

test('fails for what names a purchase that is not there', async ({ log }) => {
  const disputed = { provider: 'p', dispute_id: 'dp_1', amount: 250, reason: 'fraudulent' };
  const nowhere = { transactionId: 'nowhere', giftIds: [] };
  await rejects(settle(log, nowhere, disputeKey('dp_1')), Error, /a transaction that is not there/);
  await log.append('transaction-nowhere', 'DisputeOpened', disputed);
  await rejects(settle(log, nowhere, disputeKey('dp_1')), Error, /a transaction that is not there/);
});

const DISPUTE = { provider: 'p', dispute_id: 'dp_1', amount: 250, reason: 'fraudulent' };
const disputeIn = (log: TestLog, { transactionId }: Bought): Promise<void> =>
  log.append(`transaction-${transactionId}`, 'DisputeOpened', DISPUTE);
const refundIn = (log: TestLog, { transactionId }: Bought, total: number): Promise<void> =>
  log.append(`transaction-${transactionId}`, 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'ch_1',
    amount: 1,
    total,
  });
const disputes = async (log: TestLog): Promise<unknown[]> => (await log.all('DisputeSettled')).map(({ data }) => data);
const chargeIn = (log: TestLog, { transactionId, giftIds }: Bought): Promise<void> =>
  log.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 250 * giftIds.length,
    provider: 'p',
    charge_id: 'ch_1',
  });
async function charged(log: TestLog, count: number, price = 250): Promise<Bought> {
  const bought = await log.buy(
    Array.from({ length: count }, () => ({})),
    { price },
  );
  await chargeIn(log, bought);
  return bought;
}
async function issued(log: TestLog, { transactionId, giftIds }: Bought, index: number): Promise<string> {
  const [stream, data] = [`gift-${giftIds[index]}`, { transaction_id: transactionId, index, receiver: {} }];
  await log.append(stream, 'GiftIssued', { ...data, purchased_at: '', expires_on: '2099-01-01' });
  return stream;
}
/** A gift that support has replaced by the gift of another purchase. */
async function replaced(log: TestLog): Promise<{ readonly old: Bought; readonly replacement: Bought }> {
  const [old, replacement] = [await charged(log, 1), await log.buy([{}])];
  const replaced_by = { gift_id: replacement.giftIds[0], transaction_id: replacement.transactionId };
  await log.append(await issued(log, old, 0), 'GiftReplaced', { replaced_by, reason: 'lost' });
  return { old, replacement };
}

test('blocks the gifts of a dispute that can be used, and frees them once it is won', async ({ log }) => {
  const bought = await charged(log, 2);
  await log.append(await issued(log, bought, 1), 'GiftCancelled', { reason: 'x' });
  await disputeIn(log, bought);
  await refundIn(log, bought, 1);
  await settle(log, bought, disputeKey('dp_1'));
  await log.append(`transaction-${bought.transactionId}`, 'DisputeClosed', { ...DISPUTE, outcome: 'won' });
  await settle(log, bought, disputeKey('dp_1'));
  assert.equal(await disputes(log), [
    { dispute_id: 'dp_1', blocked: true, gifts: 1 },
    { dispute_id: 'dp_1', blocked: false, gifts: 0 },
  ]);
  const changes = await log.all('GiftBlocked', 'GiftUnblocked');
  const causes = await log.all('DisputeOpened', 'DisputeClosed');
  assert.equal(
    changes.map(({ data, metadata }) => [{ ...data, transaction_id: '' }, metadata.causationId, metadata.commandId]),
    [
      ['the payment is disputed: fraudulent', 'block'],
      ['the dispute was won', 'free'],
    ].map(([reason, verb], at) => [
      { cause: 'dispute:dp_1', reason, transaction_id: '' },
      causes[at]?.id,
      `dispute:dp_1-${verb}`,
    ]),
  );
  assert.equal(await settled(log), [], 'the external refund is another step');
});

test('answers a dispute without a charge, and external refunds of it, by no gift', async ({ log }) => {
  const bought = await log.buy([{}]);
  await log.append(`transaction-${bought.transactionId}`, 'PaymentDeclined', { provider: 'p', code: 'x' });
  await disputeIn(log, bought);
  await refundIn(log, bought, 250);
  await settle(log, bought, disputeKey('dp_1'));
  await settle(log, bought);
  assert.equal(
    [await disputes(log), await settled(log), await log.all('GiftBlocked', 'GiftIssued', 'GiftCancelled')],
    [
      [{ dispute_id: 'dp_1', blocked: true, gifts: 0 }],
      [{ total: 250, cancelled: 0, vouchered: 0, difference: 0 }],
      [],
    ],
  );
});

test('parks no dispute for the shortfall of an external refund', async ({ log }) => {
  const bought = await refundedMoney(log);
  await disputeIn(log, bought);
  await settle(log, bought, disputeKey('dp_1'), { shortfall: NONE });
  assert.equal(await disputes(log), [{ dispute_id: 'dp_1', blocked: true, gifts: 2 }]);
});

test('cancels for an external refund the last gifts first, those with a code at the end', async ({ log }) => {
  const bought = await charged(log, 4);
  for (const index of [2, 3])
    await log.append(await issued(log, bought, index), 'VoucherAssigned', { voucher_id: `v${index}` });
  const order: number[] = [];
  for (const total of [250, 500, 750, 1_000]) {
    await refundIn(log, bought, total);
    await settle(log, bought).catch(() => undefined);
    const cancelledNow = (await log.all('GiftCancelled')).map(({ stream }) => stream);
    order.push(bought.giftIds.findIndex((id) => `gift-${id}` === cancelledNow.at(-1)));
  }
  assert.equal(order, [1, 0, 3, 2]);
  assert.equal((await settled(log)).at(-1), { total: 1_000, cancelled: 4, vouchered: 2, difference: 0 });
  await rejects(
    settle(log, bought, PROVIDER_REFUND_KEY, { retried: RETRIED }),
    GiveUpError,
    /^£10.00 was given back at the provider; 4 gifts are cancelled for it; the codes of 2 of them are out$/,
  );
});

test('cancels nothing for money that went back for free gifts', async ({ log }) => {
  const bought = await charged(log, 1, 0);
  await refundIn(log, bought, 250);
  await rejects(settle(log, bought), GiveUpError, /0 gifts are cancelled for it; £2.50 of it no unredeemed gift/);
  assert.equal([await settled(log), await cancelled(log)], [[NONE], 0]);
});

test('counts gifts of a refused refund first, since it was made by hand', async ({ log }) => {
  const bought = await charged(log, 3);
  const stream = `transaction-${bought.transactionId}`;
  const [own = ''] = bought.giftIds;
  const refund = { refund_id: 'r', gift_ids: [own] };
  await log.append(stream, 'RefundRequested', { ...refund, voided: false, reason: 'x' });
  await log.append(await issued(log, bought, 0), 'GiftCancelled', { reason: 'refunded', refund_id: 'r' });
  const by = { attempt: 1, kept: {}, amount: 250, provider: 'p', charge_id: 'ch_1', payment_reference: 'pm' };
  await log.append(stream, 'RefundStarted', { ...refund, ...by });
  await log.append(stream, 'RefundRefused', { refund_id: 'r', attempt: 1, code: 'x' });
  for (const total of [250, 500]) {
    await refundIn(log, bought, total);
    await settle(log, bought);
  }
  assert.equal(
    [await settled(log), (await log.all('GiftCancelled')).map(({ stream: of }) => of)],
    [
      [
        { total: 250, cancelled: 1, vouchered: 0, difference: 0 },
        { total: 500, cancelled: 2, vouchered: 0, difference: 0 },
      ],
      [`gift-${own}`, `gift-${bought.giftIds[2]}`],
    ],
  );
});

test('counts no more gifts of a refund made by hand than the money makes up for', async ({ log }) => {
  const bought = await charged(log, 3);
  const stream = `transaction-${bought.transactionId}`;
  await refundIn(log, bought, 250);
  await settle(log, bought);
  const refund = { refund_id: 'r', gift_ids: bought.giftIds.slice(0, 2) };
  await log.append(stream, 'RefundRequested', { ...refund, voided: false, reason: 'x' });
  for (const index of [0, 1])
    await log.append(await issued(log, bought, index), 'GiftCancelled', { reason: 'refunded', refund_id: 'r' });
  const by = { attempt: 1, kept: {}, amount: 500, provider: 'p', charge_id: 'ch_1', payment_reference: 'pm' };
  await log.append(stream, 'RefundStarted', { ...refund, ...by });
  await log.append(stream, 'RefundRefused', { refund_id: 'r', attempt: 1, code: 'x' });
  await refundIn(log, bought, 500);
  await settle(log, bought);
  assert.equal((await settled(log)).at(-1), { total: 500, cancelled: 2, vouchered: 0, difference: 0 });
});

test('counts no gift that another refund has cancelled', async ({ log }) => {
  const bought = await charged(log, 1);
  await log.append(await issued(log, bought, 0), 'GiftCancelled', { reason: 'refunded', refund_id: 'other' });
  await refundIn(log, bought, 250);
  await rejects(settle(log, bought), GiveUpError, /no unredeemed gift/);
  assert.equal(await settled(log), [NONE]);
});

test('waits for the issue of a replacement, then blocks or cancels it in place of its gift', async ({ log }) => {
  const { old, replacement } = await replaced(log);
  await disputeIn(log, old);
  await refundIn(log, old, 250);
  for (const key of [disputeKey('dp_1'), PROVIDER_REFUND_KEY]) {
    const waits = await rejects(settle(log, old, key), NotYetError, /replacement has not been issued yet/);
    assert.equal([waits.waitMs, waits.mayNeverCome], [1_000, true]);
  }
  await chargeIn(log, replacement);
  await settle(log, old, disputeKey('dp_1'));
  await settle(log, old);
  assert.equal(
    [await disputes(log), await settled(log)],
    [[{ dispute_id: 'dp_1', blocked: true, gifts: 1 }], [{ total: 250, cancelled: 1, vouchered: 0, difference: 0 }]],
  );
  assert.equal(
    [
      await log.types(`gift-${replacement.giftIds[0]}`),
      (await log.types(`gift-${old.giftIds[0]}`)).includes('GiftCancelled'),
    ],
    [['GiftIssued', 'GiftBlocked', 'GiftCancelled'], false],
  );
  await log.append(`transaction-${old.transactionId}`, 'DisputeClosed', { ...DISPUTE, outcome: 'lost' });
  await log.append(`transaction-${old.transactionId}`, 'DisputeOpened', { ...DISPUTE, dispute_id: 'dp_2' });
  await settle(log, old, disputeKey('dp_2'));
  assert.equal((await disputes(log)).at(-1), { dispute_id: 'dp_2', blocked: true, gifts: 0 }, 'it is cancelled');
});

test('fails where a replacement was never made, and after many lost races', async ({ log }) => {
  const { old, replacement } = await replaced(log);
  await disputeIn(log, old);
  const { read, append } = log.events;
  log.events.read = async (stream, options) =>
    stream === `transaction-${replacement.transactionId}` ? [] : read(stream, options);
  await rejects(settle(log, old, disputeKey('dp_1')), Error, /names a replacement that was never made/);
  const other = await charged(log, 1);
  await disputeIn(log, other);
  let races = 0;
  log.events.append = async (stream, events, expected) => {
    if (events[0]?.type === 'DisputeSettled') throw new ConflictError(stream, expected, races++);
    return append(stream, events, expected);
  };
  await rejects(settle(log, other, disputeKey('dp_1')), ConflictError, /is at revision -1, expected any/);
  assert.is(races, RACES);
});

test('parks a shortfall only where it is found, left open or retried', async ({ log }) => {
  const bought = await refundedMoney(log);
  await redeemed(log, bought);
  const short = /^£2\.50 was given back at the provider; 0 gifts are cancelled for it; £2\.50/;
  await rejects(settle(log, bought), GiveUpError, short);
  await rejects(settle(log, bought, PROVIDER_REFUND_KEY, { shortfall: NONE }), GiveUpError, short);
  await rejects(settle(log, bought, PROVIDER_REFUND_KEY, { retried: RETRIED }), GiveUpError, short);
  await settle(log, bought);
  assert.equal([await settled(log), await cancelled(log)], [[NONE], 0]);
});

test('answers all the money on a retry, not only the shortfall', async ({ log }) => {
  const bought = await refundedMoney(log);
  const [used = '', left = ''] = bought.giftIds;
  await log.append(`transaction-${bought.transactionId}`, 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'ch_1',
    amount: 250,
    total: 500,
  });
  await redeemed(log, bought);
  await log.append(`gift-${left}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await rejects(settle(log, bought), GiveUpError, /1 gifts are cancelled for it; £2\.50/);
  await log.append(`gift-${used}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await settle(log, bought, PROVIDER_REFUND_KEY, { retried: RETRIED });
  assert.equal(
    [(await settled(log)).at(-1), await cancelled(log)],
    [{ total: 500, cancelled: 2, vouchered: 0, difference: 0 }, 2],
  );
});

test('retries a dispute without touching the shortfall of an external refund', async ({ log }) => {
  const bought = await refundedMoney(log);
  await redeemed(log, bought);
  await rejects(settle(log, bought), GiveUpError, /no unredeemed gift makes up for/);
  for (const giftId of bought.giftIds) await log.append(`gift-${giftId}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await log.append(`transaction-${bought.transactionId}`, 'DisputeOpened', {
    provider: 'p',
    dispute_id: 'dp_1',
    amount: 250,
    reason: 'fraudulent',
  });
  for (let time = 0; time < 2; time++) await settle(log, bought, disputeKey('dp_1'), { retried: RETRIED });
  assert.equal([await settled(log), await cancelled(log), (await log.all('DisputeSettled')).length], [[NONE], 0, 1]);
});

test('another process that settles it at that moment parks it, too', async ({ log }) => {
  const bought = await refundedMoney(log);
  await redeemed(log, bought);
  const events = interrupted(log, () => rejects(settle(log, bought), GiveUpError, /no unredeemed gift/));
  await settle(log, bought, PROVIDER_REFUND_KEY, {}, { events });
  assert.equal(await settled(log), [NONE]);
});

test('cancels no second gift after waking behind another process', async ({ log }) => {
  const bought = await refundedMoney(log);
  let asleep = false;
  const events = interrupted(log, async () => {
    asleep = true;
    await redeemed(log, bought, bought.giftIds.slice(1));
    await settle(log, bought);
  });
  const mayAct = (): void => {
    if (asleep) throw new NotOursError('the work has passed to another process');
  };
  await rejects(settle(log, bought, PROVIDER_REFUND_KEY, {}, { events, mayAct }), NotOursError, /passed/);
  assert.equal([await settled(log), await cancelled(log)], [[ONE], 1]);
});

test('counts a gift that the process before it cancels at that moment, and cancels no second one', async ({ log }) => {
  const bought = await refundedMoney(log);
  let appends = 0;
  const dying: EventStore = {
    ...log.events,
    async append(...args) {
      if (appends++ > 0) throw new NotOursError('the process is gone');
      return log.events.append(...args);
    },
  };
  const events = interrupted(log, () =>
    rejects(settle(log, bought, PROVIDER_REFUND_KEY, {}, { events: dying }), NotOursError, /gone/),
  );
  await settle(log, bought, PROVIDER_REFUND_KEY, {}, { events });
  assert.equal([await settled(log), await cancelled(log)], [[ONE], 1]);
});

test.run();
