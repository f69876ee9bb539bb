import * as assert from 'uvu/assert';
import { disputeKey, PROVIDER_REFUND_KEY, type ProviderRefundSettled } from '../../../src/domain/purchase/disputes.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { GiftChangeDeps } from '../../../src/processors/purchase/giftChanges.js';
import { settleReversal } from '../../../src/processors/dispute/disputeStep.js';
import { GiveUpError, NotYetError } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
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
