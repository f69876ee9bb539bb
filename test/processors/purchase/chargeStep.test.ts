import * as assert from 'uvu/assert';
import type { ChargeDeps } from '../../../src/processors/purchase/chargeStep.js';
import { GiveUpError, NotYetError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { ConflictError } from '../../../src/ports/eventStore.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import {
  bought,
  CARD,
  CHARGED,
  type Charging,
  charging,
  minutesFromNow,
  paymentMethod,
  subjects,
  waitsUntil,
} from '../../support/fixtures/charging.js';
import { eventOf, hoursAgo, logSuite, type TestLog } from '../../support/service/testLog.js';
import { rejects } from '../../support/assertions/rejects.js';

const test = logSuite('charging a purchase that others may have moved on');

for (const [end, data] of [
  ['PaymentCharged', { amount: 250, provider: 'p', charge_id: 'ch_1' }],
  ['PaymentDeclined', { provider: 'p', code: 'lost_card' }],
] as const) {
  test(`asks for no money once ${end} is recorded, at any try`, async ({ log }) => {
    const purchase = await bought(log);
    await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
    await log.append(purchase.stream, end, data);
    for (const fresh of [true, false]) await purchase.charge(fresh);
    assert.equal(
      [purchase.requested, await log.types(purchase.stream)],
      [[], ['GiftsPurchased', 'ChargeStarted', end]],
    );
  });
}

test('asks no worker once another process has the work', async ({ log }) => {
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  const [unasked, waiting] = [await bought(log), await bought(log)];
  await log.append(waiting.stream, 'ChargeStarted', { amount: 250, ...CARD });
  await log.append(waiting.stream, 'PaymentAuthenticationRequired', waitsUntil(hoursAgo(1)));
  for (const purchase of [unasked, waiting]) {
    await rejects(purchase.charge(false, { mayAct }), NotOursError, /passed on/);
    assert.equal(purchase.requested, []);
  }
});

test('asks no worker once the lease has been lost while the payment method was read', async ({ log }) => {
  const purchase = await bought(log);
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
  let held = true;
  const mayAct = (): void => {
    if (!held) throw new NotOursError('passed on');
  };
  const lookUp: ChargeDeps['paymentMethod'] = async (...named) => {
    const method = await paymentMethod(...named);
    held = false;
    return method;
  };
  await rejects(purchase.charge(false, { mayAct, paymentMethod: lookUp }), NotOursError, /passed on/);
  assert.equal(purchase.requested, []);
});

test('records the answer once though another event is appended meanwhile', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      await log.append(purchase.stream, 'DisputeOpened', {
        provider: 'p',
        dispute_id: 'dp_1',
        amount: 250,
        reason: 'fraudulent',
      });
      return CHARGED;
    },
  });
  await purchase.charge(true);
  assert.equal(
    [subjects(purchase), await log.types(purchase.stream)],
    [[SUBJECTS.charge], ['GiftsPurchased', 'ChargeStarted', 'DisputeOpened', 'PaymentCharged']],
  );
});

test("sends the time of the first request, from which the provider's key counts", async ({ log }) => {
  const purchase = await bought(log, { at: hoursAgo(3) });
  const started_at = hoursAgo(2);
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, started_at);
  await purchase.charge(false);
  assert.equal(
    purchase.requested.map(([subject, message]) => [subject, (message as { started_at: string }).started_at]),
    [[SUBJECTS.charge, started_at]],
  );
});

test('asks under a clock slightly ahead, and waits under one far ahead', async ({ log }) => {
  const [moment, far] = [await bought(log), await bought(log, { answer: async () => ({ outcome: 'unknown' }) })];
  await log.append(
    moment.stream,
    'ChargeStarted',
    { amount: 250, ...CARD },
    new Date(Date.now() + 3_000).toISOString(),
  );
  await log.append(far.stream, 'ChargeStarted', { amount: 250, ...CARD }, hoursAgo(-3));
  await moment.charge(false);
  assert.equal(subjects(moment), [SUBJECTS.charge]);
  const waits = await rejects(far.charge(false), NotYetError, /not been asked for yet/);
  assert.equal([waits.mayNeverCome, subjects(far)], [true, [SUBJECTS.lookUpCharge]]);
});

test('never looks a free purchase up', async ({ log }) => {
  for (const [purchasedAt, startedAt] of [
    [hoursAgo(50), hoursAgo(49)],
    [hoursAgo(50), hoursAgo(1)],
    [hoursAgo(0), hoursAgo(-26)],
  ]) {
    const purchase = await bought(log, {
      price: 0,
      ...(purchasedAt === undefined ? {} : { at: purchasedAt }),
    });
    await log.append(purchase.stream, 'ChargeStarted', { amount: 0, ...CARD }, startedAt);
    await purchase.charge(false);
    assert.equal(
      [subjects(purchase), (await log.types(purchase.stream)).at(-1)],
      [[SUBJECTS.charge], 'PaymentCharged'],
    );
  }
});

test('waits for a buyer until the end of their time, and looks then', async ({ log }) => {
  const purchase = await bought(log, { answer: async () => ({ outcome: 'unknown' }) });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, minutesFromNow(-14.5));
  await log.append(
    purchase.stream,
    'PaymentAuthenticationRequired',
    waitsUntil(minutesFromNow(0.5)),
    minutesFromNow(-14.5),
  );
  const waits = await rejects(purchase.charge(false), NotYetError, /not proved/);
  assert.ok(waits.waitMs > 20_000 && waits.waitMs <= 30_000, `${waits.waitMs} ms`);
  assert.equal(purchase.requested, [
    [SUBJECTS.lookUpCharge, { transaction_id: purchase.stream.slice('transaction-'.length), payment_id: 'pi_1' }],
  ]);
});

test('cancels the payment of a buyer who failed before it is declined', async ({ log }) => {
  const purchase = await bought(log, {
    answer: async () => ({ outcome: 'declined', provider: 'p', code: 'card_declined', simulated: false }),
  });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
  await log.append(purchase.stream, 'PaymentAuthenticationRequired', waitsUntil(minutesFromNow(10)));
  await log.append(purchase.stream, 'PaymentAuthenticationFailed', {
    provider: 'p',
    payment_id: 'pi_1',
    code: 'card_declined',
  });
  await purchase.charge(false);
  assert.equal(
    purchase.requested.map(([subject, message]) => [subject, (message as { code: string }).code]),
    [[SUBJECTS.cancelCharge, 'card_declined']],
  );
  assert.is((await log.types(purchase.stream)).at(-1), 'PaymentDeclined');
});

/** The events after the purchase: types, data, and whether they were simulated. */
const story = async (log: TestLog, { stream }: Charging): Promise<unknown[]> =>
  (await log.events.read(stream)).slice(1).map(({ type, data, metadata }) => [type, data, metadata.simulated === true]);

test('records the start with its payer, then the answer of a worker that got the whole request', async ({ log }) => {
  const purchase = await bought(log, { answer: async () => ({ ...CHARGED, amount: 250, simulated: true }) });
  const read: string[] = [];
  const method: ChargeDeps['paymentMethod'] = async (reference) => {
    read.push(reference);
    return { kind: 'card', prepaid: false, customer: 'cus_1' };
  };
  await purchase.charge(true, { paymentMethod: method });
  const [bought_, started, charged] = await log.events.read(purchase.stream);
  assert.equal(purchase.requested, [
    [
      SUBJECTS.charge,
      {
        transaction_id: purchase.transactionId,
        amount: 250,
        payment_reference: 'pm_card_visa',
        customer: 'cus_1',
        started_at: started?.at,
      },
    ],
  ]);
  assert.equal(read, ['pm_card_visa'], 'once');
  assert.equal(await story(log, purchase), [
    ['ChargeStarted', { amount: 250, ...CARD }, false],
    ['PaymentCharged', { amount: 250, provider: 'p', charge_id: 'ch_1' }, true],
  ]);
  assert.equal(
    [started, charged].map((event) => [event?.metadata.commandId, event?.metadata.causationId]),
    [
      [`charge-${purchase.transactionId}`, bought_?.id],
      [`charge-${purchase.transactionId}`, started?.id],
    ],
  );
});

test('waits for a worker for as long as it may take', async ({ log }) => {
  const waited: unknown[] = [];
  const bus = {
    request: async (_subject: string, _message: object, options: object) => {
      waited.push(options);
      return CHARGED;
    },
  } as unknown as ChargeDeps['bus'];
  const purchase = await bought(log);
  await purchase.charge(true, { bus, retryPolicy: { ...RETRY_POLICY, answerMs: 1_234 } });
  assert.equal(waited, [{ timeoutMs: 1_234 }]);
});

test('reads nothing first where no earlier attempt is known', async ({ log }) => {
  const purchase = await bought(log);
  const events = { ...log.events, read: async () => Promise.reject(new TypeError('it is read')) };
  await purchase.charge(true, { events });
  assert.equal((await log.types(purchase.stream)).slice(1), ['ChargeStarted', 'PaymentCharged']);
  await rejects((await bought(log)).charge(false, { events }), TypeError, /it is read/);
});

test('records a refusal', async ({ log }) => {
  const answer = { outcome: 'declined', provider: 'p', code: 'lost_card', simulated: true };
  const purchase = await bought(log, { answer: async () => answer });
  await purchase.charge(false);
  assert.equal((await story(log, purchase)).at(-1), ['PaymentDeclined', { provider: 'p', code: 'lost_card' }, true]);
});

test('asks for nothing without a payment method, or of a purchase that is not there', async ({ log }) => {
  const purchase = await bought(log);
  await rejects(
    purchase.charge(false, { paymentMethod: async () => undefined }),
    Error,
    /the payment method is unknown/,
  );
  assert.equal([purchase.requested, await story(log, purchase)], [[], []]);
  await purchase.charge(false, { events: { ...log.events, read: async () => [] } });
  assert.equal(purchase.requested, []);
});

test('leaves the charge to the process that started it at the same moment, and sends its request again', async ({
  log,
}) => {
  const purchase = await bought(log);
  const started_at = hoursAgo(0.1);
  const method: ChargeDeps['paymentMethod'] = async (...named) => {
    if ((await log.types(purchase.stream)).length === 1)
      await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, started_at);
    return paymentMethod(...named);
  };
  await purchase.charge(true, { paymentMethod: method });
  assert.equal((await log.types(purchase.stream)).slice(1), ['ChargeStarted', 'PaymentCharged']);
  assert.equal(
    purchase.requested.map(([, message]) => (message as { started_at: string }).started_at),
    [started_at],
  );
});

test('asks once where the stream moves on for as long as it tries', async ({ log }) => {
  const purchase = await bought(log);
  const dispute = (): Promise<void> =>
    log.append(purchase.stream, 'DisputeOpened', { provider: 'p', dispute_id: 'd', amount: 250, reason: 'r' });
  const { append } = log.events;
  log.events.append = async (stream, events, expected) => {
    if (events[0]?.type === 'PaymentCharged') await dispute();
    return append(stream, events, expected);
  };
  await rejects(purchase.charge(true), ConflictError, /^stream transaction-.* is at revision -1, expected any/);
  const types = await log.types(purchase.stream);
  assert.equal([subjects(purchase), types.filter((type) => type === 'DisputeOpened').length], [[SUBJECTS.charge], 7]);
});

test('charges a wallet by what it was when the charge started', async ({ log }) => {
  const wallet = { payment_reference: 'w', kind: 'wallet', prepaid: true };
  await log.append('wallet-w', 'WalletToppedUp', { top_up_id: 'u', amount: 300 });
  const [rich, poor, invoiced] = [
    await bought(log, { reference: 'w' }),
    await bought(log, { reference: 'w' }),
    await bought(log, { reference: 'i' }),
  ];
  const method: ChargeDeps['paymentMethod'] = async (reference) => ({
    kind: 'wallet',
    prepaid: reference === 'w',
    customer: null,
  });
  for (const purchase of [rich, poor, invoiced]) await purchase.charge(true, { paymentMethod: method });
  assert.equal(
    [await story(log, rich), await story(log, poor), await story(log, invoiced)],
    [
      [
        ['ChargeStarted', { amount: 250, ...wallet }, false],
        ['PaymentCharged', { amount: 250, provider: 'wallet', charge_id: `wallet-${rich.transactionId}` }, false],
      ],
      [
        ['ChargeStarted', { amount: 250, ...wallet }, false],
        ['PaymentDeclined', { provider: 'wallet', code: 'insufficient_funds' }, false],
      ],
      [
        ['ChargeStarted', { amount: 250, payment_reference: 'i', kind: 'wallet', prepaid: false }, false],
        ['PaymentCharged', { amount: 250, provider: 'invoice', charge_id: `invoice-${invoiced.transactionId}` }, false],
      ],
    ],
  );
  assert.equal([rich, poor, invoiced].flatMap(subjects), []);
  const [, debited] = await log.events.read('wallet-w');
  assert.equal([debited?.type, debited?.metadata.commandId], ['WalletDebited', `charge-${rich.transactionId}`]);
  const changed = await bought(log, { reference: 'w' });
  await log.append(changed.stream, 'ChargeStarted', { amount: 250, ...wallet });
  await changed.charge(false, { paymentMethod });
  assert.equal([subjects(changed), (await log.types(changed.stream)).at(-1)], [[], 'PaymentDeclined']);
});

for (const [which, hours, since] of [
  ['just before', 19.99, [SUBJECTS.charge]],
  ['after', 20, [SUBJECTS.lookUpCharge]],
] as const)
  test(`only looks a charge up once providers forget its key: ${which}`, async ({ log }) => {
    const at = '2026-05-01T00:00:00.000Z';
    const purchase = await bought(log, { at });
    await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, at);
    await purchase.charge(false, { now: () => Date.parse(at) + hours * 3_600_000 });
    assert.equal(subjects(purchase), since);
    assert.is((await log.types(purchase.stream)).at(-1), 'PaymentCharged');
  });

test('gives a charge up that the provider does not know and that is too old to be asked for', async ({ log }) => {
  const purchase = await bought(log, { at: hoursAgo(31), answer: async () => ({ outcome: 'unknown' }) });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, hoursAgo(30));
  await rejects(purchase.charge(false), GiveUpError, /does not know what became of the charge/);
  assert.equal(purchase.requested, [
    [SUBJECTS.lookUpCharge, { transaction_id: purchase.transactionId, payment_id: null }],
  ]);
});

test('looks a charge up first that is so late that a lost log may have made it', async ({ log }) => {
  const answers = [CHARGED, { outcome: 'unknown' }, CHARGED, CHARGED, CHARGED];
  const story_: unknown[] = [];
  for (const [at, started] of [
    [hoursAgo(21), hoursAgo(1)],
    [hoursAgo(21), hoursAgo(1)],
    // The log was restored just in time, then the provider was away.
    [hoursAgo(25), hoursAgo(6)],
    [hoursAgo(19.9), hoursAgo(1)],
  ] as const) {
    const purchase = await bought(log, { at, answer: async () => answers.shift() ?? {} });
    await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, started);
    await purchase.charge(false);
    story_.push([subjects(purchase), (await log.types(purchase.stream)).at(-1)]);
  }
  assert.equal(story_, [
    [[SUBJECTS.lookUpCharge], 'PaymentCharged'],
    [[SUBJECTS.lookUpCharge, SUBJECTS.charge], 'PaymentCharged'],
    [[SUBJECTS.lookUpCharge], 'PaymentCharged'],
    [[SUBJECTS.charge], 'PaymentCharged'],
  ]);
});

test('asks under a clock that is ahead by no more than clocks may differ', async ({ log }) => {
  const at = Date.parse('2026-05-01T00:00:00.000Z');
  const ask = async (aheadMs: number): Promise<string[]> => {
    const purchase = await bought(log, { at: new Date(at).toISOString() });
    await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, new Date(at).toISOString());
    await purchase.charge(false, { now: () => at - aheadMs });
    return subjects(purchase);
  };
  assert.equal([await ask(5_000), await ask(5_001)], [[SUBJECTS.charge], [SUBJECTS.lookUpCharge]]);
  const far = await bought(log, { answer: async () => ({ outcome: 'unknown' }) });
  await log.append(far.stream, 'ChargeStarted', { amount: 250, ...CARD }, hoursAgo(-3));
  const waits = await rejects(far.charge(false), NotYetError, /not been asked for yet/);
  assert.is(waits.waitMs, RETRY_POLICY.retryAtMostMs);
});

test('gives up where the provider took another amount than the price', async ({ log }) => {
  const purchase = await bought(log, { answer: async () => ({ ...CHARGED, amount: 300 }) });
  await rejects(purchase.charge(true), GiveUpError, /^p took 300 pence for this transaction \(ch_1\), which costs 250/);
  assert.equal((await log.types(purchase.stream)).slice(1), ['ChargeStarted']);
});

/** A gift, and the purchase by which support replaces it. */
async function replacing(
  log: TestLog,
  {
    issued = true,
    metadata = {},
    expires_on = '2099-01-01',
    at = hoursAgo(0),
  }: { issued?: boolean; metadata?: object; expires_on?: string; at?: string } = {},
): Promise<{ readonly giftId: string; readonly purchase: Charging; readonly of: string }> {
  const { transactionId, giftIds } = await log.buy([{ user_id: 'bea' }]);
  const [giftId = ''] = giftIds;
  const [first] = await log.events.read(`transaction-${transactionId}`);
  await log.append(`transaction-${transactionId}`, 'PaymentCharged', { amount: 250, provider: 'p', charge_id: 'c' });
  const issue = { transaction_id: transactionId, index: 0, receiver: { user_id: 'bea' }, expires_on };
  if (issued) await log.append(`gift-${giftId}`, 'GiftIssued', { ...issue, purchased_at: hoursAgo(1) });
  const replaces = { gift_id: giftId, transaction_id: transactionId };
  const data = { ...first?.data, transaction_id: 'new', seed: 'ab'.repeat(32), total: 0, reason: 'lost', replaces };
  const made = eventOf('GiftsPurchased', data);
  await log.events.append('transaction-new', [{ ...made, at, metadata: { ...made.metadata, ...metadata } }], 'none');
  return { giftId, of: transactionId, purchase: await charging(log, 'new') };
}

test('pays for a replacement by the replaced gift, as the command of its caller', async ({ log }) => {
  const { giftId, purchase } = await replacing(log);
  await purchase.charge(true);
  await purchase.charge(false);
  assert.equal(await story(log, purchase), [
    ['PaymentCharged', { amount: 0, provider: 'replacement', charge_id: `replacement-${giftId}` }, false],
  ]);
  const [bought_] = await log.events.read(purchase.stream);
  const [, replaced, ...more] = await log.events.read(`gift-${giftId}`);
  assert.equal([replaced?.type, more, subjects(purchase)], ['GiftReplaced', [], []]);
  const { commandId, correlationId, by } = bought_?.metadata ?? {};
  const metadata = { commandId, correlationId, causationId: bought_?.id, by };
  assert.equal(replaced?.metadata, metadata);
});

test('exchanges a gift that was valid when its replacement was asked for', async ({ log }) => {
  const of = { expires_on: '2026-03-01', at: '2026-03-01T23:59:59.999Z' };
  const { purchase } = await replacing(log, of);
  await purchase.charge(true, { now: () => Date.parse('2026-03-02T00:00:00.000Z') });
  assert.equal((await log.types(purchase.stream)).slice(1), ['PaymentCharged']);
});

test('exchanges a gift as the repeatable command that its caller made', async ({ log }) => {
  const { giftId, purchase } = await replacing(log, { metadata: { bodyHash: 'hash' } });
  await purchase.charge(true);
  assert.is((await log.events.read(`gift-${giftId}`))[1]?.metadata.bodyHash, 'hash');
});

test('exchanges a gift once where the outcome is recorded only later', async ({ log }) => {
  const { giftId, purchase } = await replacing(log);
  const { append } = log.events;
  let moved = false;
  log.events.append = async (stream, events, expected) => {
    if (events[0]?.type === 'PaymentCharged' && !moved) {
      moved = true;
      await log.append(stream, 'SendRescheduled', { send_at: null });
    }
    return append(stream, events, expected);
  };
  await purchase.charge(true);
  assert.equal((await log.types(purchase.stream)).slice(1), ['SendRescheduled', 'PaymentCharged']);
  assert.equal(await log.types(`gift-${giftId}`), ['GiftIssued', 'GiftReplaced']);
});

test('declines a replacement whose gift can not be exchanged any more', async ({ log }) => {
  const { giftId, purchase } = await replacing(log);
  await log.append(`gift-${giftId}`, 'GiftCancelled', { reason: 'x' });
  await purchase.charge(true);
  assert.equal(await story(log, purchase), [
    ['PaymentDeclined', { provider: 'replacement', code: 'gift_cancelled' }, false],
  ]);
});

test('pays for a replacement whose command gave the gift up while the money was looked at', async ({ log }) => {
  const { giftId, of, purchase } = await replacing(log);
  await log.append(`transaction-${of}`, 'RefundedAtProvider', { provider: 'p', charge_id: 'c', amount: 1, total: 1 });
  const { read } = log.events;
  let given = false;
  log.events.read = async (stream, options) => {
    const found = await read(stream, options);
    if (stream === `transaction-${of}` && !given) {
      given = true;
      const replaced_by = { gift_id: 'another', transaction_id: 'new' };
      await log.append(`gift-${giftId}`, 'GiftReplaced', { replaced_by, reason: 'lost' });
    }
    return found;
  };
  await purchase.charge(true);
  assert.equal((await log.types(purchase.stream)).slice(1), ['PaymentCharged']);
});

test('waits for the issue of a gift that is replaced, and exchanges it in the process with the lease only', async ({
  log,
}) => {
  const early = await replacing(log, { issued: false });
  const waits = await rejects(early.purchase.charge(true), NotYetError, /replaced gift has not been issued/);
  assert.equal([waits.waitMs, waits.mayNeverCome], [1_000, true]);
  const issue = { transaction_id: early.of, index: 0, receiver: {}, expires_on: '2099-01-01' };
  await log.append(`gift-${early.giftId}`, 'GiftIssued', { ...issue, purchased_at: hoursAgo(1) });
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  await rejects(early.purchase.charge(true, { mayAct }), NotOursError, /passed on/);
  assert.equal([await log.types(`gift-${early.giftId}`), await story(log, early.purchase)], [['GiftIssued'], []]);
});

test.run();
