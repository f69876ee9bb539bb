import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import type { Bus } from '../../../src/ports/bus.js';
import { ConflictError, type RecordedEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { walletPayments } from '../../../src/processors/purchase/walletPayments.js';
import { refund, type RefundDeps } from '../../../src/processors/refund/refundStep.js';
import { causeOf } from '../../../src/processors/runner/cause.js';
import { GiveUpError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { rejects } from '../../support/assertions/rejects.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { type Bought, hoursAgo, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('refunding gifts that others may have moved on');

const REFUNDED = { outcome: 'refunded', provider: 'p', refund_ref: 're_1', simulated: true };
const REFUSED = { outcome: 'refused', provider: 'p', code: 'charge_disputed', simulated: false };
const NEVER = { outcome: 'never' };

interface Refunding extends Bought {
  readonly stream: string;
  /** What was asked on the bus. */
  readonly asked: string[];
  run(more?: Partial<RefundDeps>, retried?: Parameters<typeof refund>[3], refundId?: string): Promise<void>;
  /** The purchase's events since the refund was requested. */
  story(): Promise<readonly RecordedEvent[]>;
}

interface Given {
  readonly receivers?: readonly object[];
  readonly price?: number;
  readonly provider?: string;
  /** When the refund was requested. */
  readonly at?: string;
  readonly answers?: readonly (object | Error)[];
  readonly giftIds?: readonly string[];
}

/** A charged purchase with a refund of these gifts, by default all. `answers`: of the worker, one after the other. */
async function requested(
  log: TestLog,
  { receivers = [{}], price = 250, provider = 'p', at, answers = [REFUNDED], giftIds }: Given = {},
): Promise<Refunding> {
  const bought = await log.buy(receivers, { price });
  const stream = `transaction-${bought.transactionId}`;
  const amount = price * receivers.length;
  await log.append(stream, 'PaymentCharged', { amount, provider, charge_id: 'ch_1' });
  const gift_ids = giftIds ?? bought.giftIds;
  await log.append(stream, 'RefundRequested', { refund_id: 'r', gift_ids, voided: false, reason: 'x' }, at);
  const asked: string[] = [];
  const left = [...answers];
  const writer = openWriter(log.events, Date.now);
  const deps: RefundDeps = {
    events: log.events,
    writer,
    bus: {
      async request(subject: string, { attempt }: { readonly attempt: number }) {
        asked.push(`${subject} ${attempt}`);
        const answer = left.shift() ?? new Error('asked too often');
        if (answer instanceof Error) throw answer;
        return answer;
      },
    } as unknown as Bus,
    wallets: walletPayments(log.events, writer),
    now: Date.now,
    retryPolicy: RETRY_POLICY,
    mayAct: () => undefined,
  };
  return {
    ...bought,
    stream,
    asked,
    run: (more, retried, refundId = 'r') => refund({ ...deps, ...more }, bought.transactionId, refundId, retried),
    story: async () => (await log.events.read(stream)).slice(3),
  };
}
const typesOf = (events: readonly RecordedEvent[]): string[] => events.map(({ type }) => type);
const REFUND = `${SUBJECTS.refund} 1`;
const LOOK_UP = `${SUBJECTS.lookUpRefund} 1`;

test('cancels the gifts, requests their price once, and records the answer', async ({ log }) => {
  const refunding = await requested(log, { receivers: [{}, {}] });
  await refunding.run();
  assert.equal(refunding.asked, [REFUND]);
  const story = await refunding.story();
  assert.equal(typesOf(story), ['RefundStarted', 'GiftsRefunded']);
  const [started, refunded] = story.map(({ data }) => data as Record<string, unknown>);
  assert.equal([started?.['amount'], started?.['gift_ids'], started?.['kept']], [500, refunding.giftIds, {}]);
  assert.equal([refunded?.['amount'], refunded?.['refund_ref']], [500, 're_1']);
  assert.is(story[1]?.metadata.simulated, true);
  for (const id of refunding.giftIds) {
    assert.equal(await log.types(giftStream(id)), ['GiftIssued', 'GiftCancelled']);
    const [, cancelled] = await log.events.read(giftStream(id));
    assert.equal((cancelled as RecordedEvent).data, { reason: 'refunded', refund_id: 'r' });
  }
  await refunding.run();
  assert.equal([refunding.asked.length, (await refunding.story()).length], [1, 2], 'nothing is done again');
});

test('gives back what was cancelled only, and says why the rest was not', async ({ log }) => {
  const refunding = await requested(log, { receivers: [{}, {}, {}, {}] });
  const [plain = '', used = '', out = '', disputed = ''] = refunding.giftIds;
  for (const [id, type, data] of [
    [used, 'GiftRedeemed', { redemption_id: 'x', merchant_id: null }],
    [out, 'VoucherAssigned', { voucher_id: 'v' }],
    [disputed, 'GiftBlocked', { cause: 'dispute:dp_1', reason: '' }],
  ] as const) {
    const issue = { transaction_id: refunding.transactionId, index: 0, receiver: {} };
    await log.append(giftStream(id), 'GiftIssued', issue);
    await log.append(giftStream(id), type, data);
  }
  await refunding.run();
  const [started] = await refunding.story();
  assert.equal(
    { ...(started as RecordedEvent).data },
    {
      ...(started as RecordedEvent).data,
      amount: 250,
      gift_ids: [plain],
      kept: { redeemed: [used], code_out: [out], disputed: [disputed] },
    },
  );
  for (const id of [used, out, disputed]) assert.is((await log.types(giftStream(id))).length, 2, 'it is not touched');
});

test('refunds nothing where no gift can be cancelled', async ({ log }) => {
  const refunding = await requested(log);
  const [id = ''] = refunding.giftIds;
  await log.append(giftStream(id), 'GiftIssued', { transaction_id: refunding.transactionId, index: 0, receiver: {} });
  await log.append(giftStream(id), 'GiftCancelled', { reason: 'x' });
  await refunding.run();
  const story = await refunding.story();
  assert.equal(
    story.map(({ type, data }) => [type, data]),
    [['NothingRefunded', { refund_id: 'r', kept: { cancelled: [id] } }]],
  );
  assert.equal(refunding.asked, []);
  await refunding.run();
  assert.is((await refunding.story()).length, 1);
});

test('gifts that an earlier run of the refund has cancelled are refunded, too', async ({ log }) => {
  const refunding = await requested(log);
  const [id = ''] = refunding.giftIds;
  await log.append(giftStream(id), 'GiftIssued', { transaction_id: refunding.transactionId, index: 0, receiver: {} });
  await log.append(giftStream(id), 'GiftCancelled', { reason: 'refunded', refund_id: 'r' });
  await refunding.run();
  assert.equal(typesOf(await refunding.story()), ['RefundStarted', 'GiftsRefunded']);
});

test('looks a refund up that another process has started, before it requests it', async ({ log }) => {
  const refunding = await requested(log, { answers: [new UnavailableError('no answer'), NEVER, REFUNDED] });
  await rejects(refunding.run(), Error, /no answer/);
  assert.equal(typesOf(await refunding.story()), ['RefundStarted']);
  await refunding.run();
  assert.equal(refunding.asked, [REFUND, LOOK_UP, REFUND]);
  assert.equal(typesOf(await refunding.story()), ['RefundStarted', 'GiftsRefunded']);
});

test('looks it up first where the request is so old that a lost log may have made it', async ({ log }) => {
  const refunding = await requested(log, { at: hoursAgo(30), answers: [REFUNDED] });
  await refunding.run();
  assert.equal(refunding.asked, [LOOK_UP]);
});

test('has its own request as the cause, whatever else is refunded', async ({ log }) => {
  const refunding = await requested(log, { receivers: [{}, {}] });
  const other = { refund_id: 'other', gift_ids: [], voided: false, reason: 'x' };
  await log.append(refunding.stream, 'RefundRequested', other);
  await refunding.run();
  const request = (await log.all('RefundRequested')).find(({ data }) => (data as typeof other).refund_id === 'r');
  const [started] = await log.all('RefundStarted');
  assert.equal([started?.metadata.causationId, started?.metadata.commandId], [request?.id, 'refund-r']);
});

test('looks a refund up first from the hour at which a provider has forgotten an older one', async ({ log }) => {
  const at = '2026-05-01T00:00:00.000Z';
  const asked: string[][] = [];
  for (const ms of [20 * 3_600_000 - 1, 20 * 3_600_000]) {
    const refunding = await requested(log, { at });
    await refunding.run({ now: () => Date.parse(at) + ms });
    asked.push([...refunding.asked]);
  }
  assert.equal(asked, [[REFUND], [LOOK_UP]]);
});

/** A refund whose first attempt was started so many hours ago. */
async function startedBefore(log: TestLog, hours: number, answers: readonly object[]): Promise<Refunding> {
  const refunding = await requested(log, { at: hoursAgo(hours), answers });
  const attempt = { refund_id: 'r', attempt: 1, gift_ids: refunding.giftIds, kept: {}, amount: 250 };
  const by = { provider: 'p', charge_id: 'ch_1', payment_reference: 'pm_card_visa' };
  await log.append(refunding.stream, 'RefundStarted', { ...attempt, ...by }, hoursAgo(hours));
  return refunding;
}

test('looks the attempt after one that was never made up, too', async ({ log }) => {
  const refunding = await startedBefore(log, 30, [NEVER, NEVER, REFUNDED]);
  await refunding.run();
  assert.equal(refunding.asked, [LOOK_UP, `${SUBJECTS.lookUpRefund} 2`, `${SUBJECTS.refund} 2`]);
});

test('looks up first what support retries after a provider may have forgotten it', async ({ log }) => {
  const refunding = await startedBefore(log, 30, [NEVER, NEVER, REFUNDED]);
  await log.append(refunding.stream, 'RefundRefused', { refund_id: 'r', attempt: 1, code: 'x' }, hoursAgo(29));
  const refusal = (await refunding.story()).at(-1) as RecordedEvent;
  await refunding.run({}, { at: refusal.position, cause: causeOf(refusal) });
  assert.equal(refunding.asked.slice(1), [`${SUBJECTS.lookUpRefund} 2`, `${SUBJECTS.refund} 2`]);
});

test('starts no further attempt of one that was never made where money went back by hand', async ({ log }) => {
  const refunding = await startedBefore(log, 30, [NEVER, NEVER]);
  const reported = { provider: 'p', charge_id: 'ch_1', amount: 250, total: 250 };
  await log.append(refunding.stream, 'RefundedAtProvider', reported);
  await rejects(refunding.run(), GiveUpError, /given back at p itself/);
  assert.equal([refunding.asked, (await log.all('RefundStarted')).length], [[LOOK_UP, LOOK_UP], 1]);
});

test('gives up a refund of what was never charged, and one that loses every race', async ({ log }) => {
  const { transactionId, giftIds } = await log.buy([{}]);
  const stream = `transaction-${transactionId}`;
  await log.append(stream, 'RefundRequested', { refund_id: 'r', gift_ids: giftIds, voided: false, reason: 'x' });
  const refunding = await requested(log);
  const writer = openWriter(log.events, Date.now);
  let races = 0;
  const losing: RefundDeps['writer'] = { ...writer, append: async () => void races++ };
  await rejects(refunding.run({ writer: losing }), ConflictError, /is at revision -1, expected any/);
  assert.is(races, 16);
  const deps = { events: log.events, writer, retryPolicy: RETRY_POLICY, now: Date.now, mayAct: () => undefined };
  await rejects(refund(deps as never, transactionId, 'r'), GiveUpError, /the purchase was never charged/);
});

test('starts the next attempt where an old one was never made', async ({ log }) => {
  const refunding = await requested(log, { answers: [NEVER, NEVER, REFUNDED] });
  await refunding.run({ now: () => Date.now() + 30 * 3_600_000 });
  assert.equal(
    refunding.asked,
    [1, 2, 3].map((attempt) => `${SUBJECTS.lookUpRefund} ${attempt}`),
  );
  assert.equal(typesOf(await refunding.story()), ['RefundStarted', 'RefundStarted', 'RefundStarted', 'GiftsRefunded']);
});

test('leaves to a person what may have been refunded by hand', async ({ log }) => {
  const others = { ...NEVER, others: 1 };
  const byHand = await requested(log, { answers: [new UnavailableError('down'), others, others] });
  await rejects(byHand.run(), Error, /down/);
  await rejects(byHand.run(), GiveUpError, /given back at p itself since this refund of 250 pence/);
  assert.equal(byHand.asked, [REFUND, LOOK_UP, LOOK_UP]);
});

test('records money refunded by hand that reports counted as this refund', async ({ log }) => {
  const others = { ...NEVER, others: 250 };
  const inStead = await requested(log, {
    receivers: [{}, {}],
    answers: [new UnavailableError('down'), others, others],
  });
  await rejects(inStead.run(), Error, /down/);
  for (let n = 0; n < 2; n++) await rejects(inStead.run(), GiveUpError, /given back at p itself since this refund/);
  const refused = await requested(log, { receivers: [{}, {}], answers: [REFUSED, others] });
  await rejects(refused.run(), GiveUpError, /p refuses the refund: charge_disputed/);
  for (const [{ story }, code] of [
    [inStead, 'refunded_by_hand'],
    [refused, 'charge_disputed'],
  ] as const) {
    const [, end, reported, ...more] = await story();
    const refusal = { refund_id: 'r', attempt: 1, amount: 500, provider: 'p', code };
    assert.equal([end?.type, end?.data, more], ['RefundRefused', refusal, []]);
    const noted = { provider: 'p', charge_id: 'ch_1', amount: 250, total: 250 };
    assert.equal([reported?.type, reported?.data], ['RefundedAtProvider', noted]);
  }
});

test('records no money that was refunded by hand of a charge that bought nothing', async ({ log }) => {
  const refunding = await requested(log, { answers: [REFUSED] });
  const late = { refund_id: 'late-ch_2', attempt: 1, gift_ids: [], kept: {}, amount: 250, payment_reference: 'pm' };
  await log.append(refunding.stream, 'RefundStarted', { ...late, provider: 'p', charge_id: 'ch_2' });
  await rejects(refunding.run({}, undefined, 'late-ch_2'), GiveUpError, /refuses/);
  assert.equal(typesOf(await refunding.story()), ['RefundStarted', 'RefundRefused']);
});

test('gives up what the provider refuses, and tries once more for each retry by support', async ({ log }) => {
  const refunding = await requested(log, { answers: [REFUSED, NEVER, NEVER, REFUNDED] });
  await rejects(refunding.run(), GiveUpError, /p refuses the refund: charge_disputed/);
  await rejects(refunding.run(), GiveUpError, /refuses/);
  assert.equal(refunding.asked, [REFUND, LOOK_UP]);
  const refusal = (await refunding.story()).at(-1) as RecordedEvent;
  const cause = { ...causeOf(refusal), id: 'retry', correlationId: 'other' };
  await rejects(refunding.run({}, { at: '', cause } as never), GiveUpError, /refuses/);
  await refunding.run({}, { at: refusal.position, cause } as never);
  assert.equal(refunding.asked, [REFUND, LOOK_UP, `${SUBJECTS.lookUpRefund} 2`, `${SUBJECTS.refund} 2`]);
  const story = await refunding.story();
  assert.equal(typesOf(story), ['RefundStarted', 'RefundRefused', 'RefundStarted', 'GiftsRefunded']);
  const again = story[2] as RecordedEvent;
  assert.is((again.data as { readonly attempt: number }).attempt, 2);
  assert.equal([again.metadata.causationId, again.metadata.correlationId], ['retry', log.correlationId]);
});

test('a retry by support requests nothing where money went back since the refusal', async ({ log }) => {
  const refunding = await requested(log, { answers: [REFUSED, NEVER, { ...NEVER, others: 1 }] });
  await rejects(refunding.run(), GiveUpError, /refuses/);
  const refusal = (await refunding.story()).at(-1) as RecordedEvent;
  const retried = { at: refusal.position, cause: causeOf(refusal) } as never;
  await rejects(refunding.run({}, retried), GiveUpError, /given back at p itself/);
  const reported = { provider: 'p', charge_id: 'ch_1', amount: 250, total: 250 };
  await log.append(refunding.stream, 'RefundedAtProvider', reported);
  await rejects(refunding.run({}, retried), GiveUpError, /given back at p itself/);
  assert.is(refunding.asked.length, 3, 'the report is enough');
});

test('refunds no more than is left of the charge', async ({ log }) => {
  const refunding = await requested(log, { receivers: [{}, {}] });
  const reported = { provider: 'p', charge_id: 'ch_1', amount: 300, total: 300 };
  await log.append(refunding.stream, 'RefundedAtProvider', reported);
  await rejects(refunding.run(), GiveUpError, /their 500 pence are more than the 200 pence left/);
  assert.equal(refunding.asked, []);
  for (const id of refunding.giftIds) assert.is((await log.types(giftStream(id))).at(-1), 'GiftCancelled');
});

test('gives up a refund that nobody requested, or of gifts that are none of the purchase', async ({ log }) => {
  const refunding = await requested(log, { receivers: [{}, {}], giftIds: ['ff'.repeat(10)] });
  await rejects(refunding.run(), GiveUpError, /is none of this purchase/);
  const { transactionId } = await log.buy([{}]);
  const deps = { events: log.events, writer: openWriter(log.events, Date.now), retryPolicy: RETRY_POLICY };
  for (const id of [transactionId, 'unknown'])
    await rejects(refund({ ...deps, now: Date.now } as never, id, 'r'), GiveUpError, /never asked for/);
});

test('does nothing once another process has the work', async ({ log }) => {
  const refunding = await requested(log);
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  await rejects(refunding.run({ mayAct }), NotOursError, /passed on/);
  assert.equal([refunding.asked, await refunding.story(), await log.all('GiftCancelled')], [[], [], []]);
});

test('a prepaid wallet is credited once', async ({ log }) => {
  const refunding = await requested(log, { provider: 'wallet' });
  await log.append('wallet-pm_card_visa', 'WalletToppedUp', { top_up_id: 'u', amount: 900 });
  const debit = { transaction_id: refunding.transactionId, amount: 250 };
  await log.append('wallet-pm_card_visa', 'WalletDebited', debit);
  await refunding.run();
  await refunding.run();
  const [credited, ...more] = await log.all('WalletCredited');
  assert.equal([credited?.data, more], [{ ...debit, cause: 'r' }, []]);
  assert.is((await refunding.story()).at(-1)?.type, 'GiftsRefunded');
});

test.run();
