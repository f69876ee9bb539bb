import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EventStore, NewEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { refund } from '../../../src/processors/refund/refundStep.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { walletPayments } from '../../../src/processors/purchase/walletPayments.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { faultyBus } from '../../support/faults/faultyBus.js';
import { type Bought, hoursAgo, type House, phone, sentIn } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { mortal } from '../../support/faults/mortal.js';
import { withRealProviders } from '../../support/providers/realProviders.js';

const test = houseSuite('refunds');

let serial = 0;
/** Asks for a refund as the command does. */
async function ask(
  house: House,
  { transactionId, giftIds }: Bought,
  gifts: readonly string[] = giftIds,
  voided = false,
): Promise<string> {
  const refundId = `refund-${++serial}`;
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: refundId,
    gift_ids: gifts,
    voided,
    reason: 'wrong product',
  });
  return refundId;
}
async function settled(
  house: House,
  receivers: readonly object[],
  options: { reference?: string; price?: number } = {},
): Promise<Bought> {
  const bought = await house.buy(receivers, options);
  await house.until(async () =>
    (await Promise.all(bought.giftIds.map((id) => house.types(`gift-${id}`)))).every((types) => types.length > 0),
  );
  return bought;
}
const ended = (house: House, count: number): Promise<void> =>
  house.until(async () => (await house.all('GiftsRefunded', 'NothingRefunded', 'WorkParked')).length === count);
/** Bought, with a refund that the provider has refused. */
async function refused(house: House): Promise<{ readonly bought: Bought; readonly refundId: string }> {
  await house.work();
  house.process();
  const bought = await settled(house, [{}], { reference: 'pm_card_refundFail' });
  const refundId = await ask(house, bought);
  await ended(house, 1);
  return { bought, refundId };
}

const refOf = async (house: House): Promise<string | undefined> =>
  (await house.all('GiftsRefunded')).map(({ data }) => (data as { refund_ref: string }).refund_ref)[0];

test("cancels what it can, and gives back exactly the cancelled gifts' share", async ({ house }) => {
  await house.work();
  house.process();
  const bought = await settled(house, [{}, {}, {}, {}], { price: 250 });
  const [plain = '', redeemed = '', vouchered = '', disputed = ''] = bought.giftIds;
  await house.append(`gift-${redeemed}`, 'GiftRedeemed', { redemption_id: 'x', merchant_id: null });
  await house.append(`gift-${vouchered}`, 'VoucherAssigned', { voucher_id: 'v' });
  await house.append(`gift-${disputed}`, 'GiftBlocked', { cause: 'dispute:dp_1', reason: '' });
  const refundId = await ask(house, bought);
  await ended(house, 1);
  const kept = { redeemed: [redeemed], code_out: [vouchered], disputed: [disputed] };
  const [started] = await house.all('RefundStarted');
  assert.equal(started?.data, {
    refund_id: refundId,
    attempt: 1,
    gift_ids: [plain],
    kept,
    amount: 250,
    provider: 'simulated',
    charge_id: `ch_simulated_${bought.transactionId}`,
    payment_reference: 'pm_card_visa',
  });
  const [given] = await house.all('GiftsRefunded');
  assert.equal(given?.data, {
    refund_id: refundId,
    attempt: 1,
    gift_ids: [plain],
    amount: 250,
    provider: 'simulated',
    refund_ref: `re_simulated_${refundId}_1`,
  });
  assert.is(given?.metadata.simulated, true);
  assert.equal((await house.events.read(`gift-${plain}`)).at(-1)?.data, {
    reason: 'refunded',
    refund_id: refundId,
  });
  const [requested] = await house.all('RefundRequested');
  const [cancelled] = await house.all('GiftCancelled');
  assert.is(cancelled?.metadata.causationId, requested?.id);
  assert.equal([requested?.id, started?.id].includes(given?.metadata.causationId), true);

  const voided = await ask(house, bought, [vouchered, redeemed], true);
  await ended(house, 2);
  assert.equal((await house.all('GiftsRefunded')).at(-1)?.data, {
    refund_id: voided,
    attempt: 1,
    gift_ids: [vouchered],
    amount: 250,
    provider: 'simulated',
    refund_ref: `re_simulated_${voided}_1`,
  });
  const nothing = await ask(house, bought, [redeemed]);
  await ended(house, 3);
  assert.equal((await house.all('NothingRefunded'))[0]?.data, { refund_id: nothing, kept: { redeemed: [redeemed] } });
});

/** An event store that appends a cancellation with each issue of a gift; `changed`: the issue, as it is stored. */
function cancelling(events: EventStore, changed: (issue: NewEvent) => NewEvent = (issue) => issue): EventStore {
  const withCancellation = (event: NewEvent): NewEvent[] => {
    if (event.type !== 'GiftIssued') return [event];
    const issue = changed(event);
    return [issue, { ...issue, id: randomUUID(), type: 'GiftCancelled', data: { reason: 'x', refund_id: 'r' } }];
  };
  return {
    ...events,
    append: async (stream, all, expected) => events.append(stream, all.flatMap(withCancellation), expected),
  };
}

/** Two receivers, whose gifts are cancelled as they are issued, and neither is told. */
async function nobodyIsTold(house: House, events: EventStore): Promise<void> {
  await house.work();
  house.process({ events });
  await house.buy([phone(1), phone(2)]);
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(
    (await house.all('NotificationSent', 'NotificationFailed')).map(({ data }) => (data as { cause?: string }).cause),
    ['gift is cancelled', 'gift is cancelled'],
  );
  assert.is(sentIn(house), 0);
}

test('sends no notification of a gift cancelled in the append that issues it', async ({ house }) => {
  await nobodyIsTold(house, cancelling(house.events));
});

test('nor where the reader of the log sees its issue long before its end', async ({ house }) => {
  const cancelled = cancelling(house.events, (issue) => ({
    ...issue,
    metadata: { ...issue.metadata, commandId: 'provider-refund-t' },
  }));
  await nobodyIsTold(house, {
    ...cancelled,
    async *follow(...args) {
      for await (const { events: all, position, caughtUp } of house.events.follow(...args)) {
        for (const event of all.slice(0, -1)) {
          yield { events: [event], position: event.position, caughtUp: false };
          await sleep(100);
        }
        yield { events: all.slice(-1), position, caughtUp };
      }
    },
  });
});

test('notifies of gifts only after a refund has decided on them', async ({ house }) => {
  await house.work();
  const bought = await house.buy([phone(1), phone(2)]);
  const events: EventStore = {
    ...house.events,
    append: async (stream, all, expected) => {
      const [issue] = all;
      // The refund is asked for before anything is issued, and is slower than the telling would be.
      if (issue?.type === 'PaymentCharged') {
        const outcome = await house.events.append(stream, all, expected);
        await ask(house, bought);
        return outcome;
      }
      if (issue?.type === 'GiftCancelled') await sleep(60);
      const used = issue?.type === 'GiftIssued' && stream === `gift-${bought.giftIds[1]}`;
      return house.events.append(
        stream,
        used
          ? [
              issue,
              {
                ...issue,
                id: randomUUID(),
                type: 'VoucherAssigned',
                data: {
                  voucher_id: 'v',
                  code: 'x',
                  pin: null,
                  segment_id: 's',
                  expires_at: '2099-01-01T00:00:00.000Z',
                },
              },
            ]
          : all,
        expected,
      );
    },
  };
  // Nobody is looked after again by the clock alone.
  house.process({ events, retryPolicy: { ...house.deps.retryPolicy, retryAtMostMs: 60_000 } });
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 2);
  const [cancelled = '', kept = ''] = bought.giftIds;
  assert.equal(await house.types(`notification-${cancelled}`), ['NotificationFailed']);
  assert.equal(await house.types(`notification-${kept}`), ['NotificationStarted', 'NotificationSent']);
  assert.is(sentIn(house), 1);
  const [begun] = await house.all('NotificationStarted');
  const [decided] = await house.all('RefundStarted');
  assert.ok(begun !== undefined && decided !== undefined && begun.position > decided.position);
});

/** The id of the event that issued a gift. */
const issueOf = async (house: House, giftId: string): Promise<string | undefined> =>
  (await house.all('GiftIssued')).find(({ stream }) => stream === `gift-${giftId}`)?.id;

test('sends no notification of a gift that was cancelled before', async ({ house }) => {
  const { transactionId, giftIds } = await house.buy([phone(1), phone(2)]);
  const [first = '', second = ''] = giftIds;
  await house.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'simulated',
    charge_id: 'c',
  });
  for (const [index, id] of giftIds.entries())
    await house.append(`gift-${id}`, 'GiftIssued', {
      transaction_id: transactionId,
      index,
      receiver: { phone_id: `hash${index}` },
    });
  await house.work();
  await sleep(2);
  await house.append(`notification-${second}`, 'NotificationStarted', {
    transaction_id: transactionId,
    channel: 'sms',
    attempt: 1,
    asked_by: await issueOf(house, second),
  });
  for (const id of giftIds) await house.append(`gift-${id}`, 'GiftCancelled', { reason: 'x', refund_id: 'r' });
  house.process();
  await house.until(async () => (await house.all('NotificationFailed')).length === 2);
  const failed = await house.all('NotificationFailed');
  assert.equal(
    Object.fromEntries(failed.map(({ stream, data }) => [stream, data])),
    Object.fromEntries(
      await Promise.all(
        giftIds.map(async (id) => [
          `notification-${id}`,
          { cause: 'gift is cancelled', attempt: 1, asked_by: await issueOf(house, id) },
        ]),
      ),
    ),
  );
  assert.equal(await house.types(`notification-${first}`), ['NotificationFailed']);
  assert.equal(
    house.lines.filter(({ msg }) => msg === 'simulated notification sent'),
    [],
  );
});

test('a gift that is paid for and not issued yet is issued and cancelled', async ({ house }) => {
  const bought = await house.buy([{}, {}]);
  await house.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'wallet',
    charge_id: 'c',
  });
  await house.append('wallet-pm_card_visa', 'WalletToppedUp', { top_up_id: 'a', amount: 500 });
  await house.append('wallet-pm_card_visa', 'WalletDebited', { transaction_id: bought.transactionId, amount: 500 });
  const refundId = await ask(house, bought);
  const [asked] = await house.all('RefundRequested');
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  const events: EventStore = {
    ...house.events,
    async append(stream, appended, expected) {
      // Who issues the gifts of a purchase comes too late for each.
      if (appended[0]?.type === 'GiftIssued' && appended[0].metadata.causationId !== asked?.id) await over;
      return house.events.append(stream, appended, expected);
    },
  };
  house.process({ events });
  await ended(house, 1);
  end();
  for (const id of bought.giftIds) assert.equal(await house.types(`gift-${id}`), ['GiftIssued', 'GiftCancelled']);
  assert.equal((await house.events.read('wallet-pm_card_visa')).at(-1)?.data, {
    transaction_id: bought.transactionId,
    amount: 500,
    cause: refundId,
  });
  assert.is(await refOf(house), `wallet-${refundId}`);
});

test('a race with a redeem has one winner', async ({ house }) => {
  await house.work();
  house.process();
  const bought = await settled(
    house,
    Array.from({ length: 40 }, () => ({})),
  );
  const redeeming = Promise.all(
    bought.giftIds.map(async (id, index) => {
      if (index % 2 === 0) await sleep(index / 4);
      // As the redeem command does: at the revision that it has read.
      const event = {
        id: crypto.randomUUID(),
        type: 'GiftRedeemed',
        at: new Date().toISOString(),
        data: { redemption_id: 'x', merchant_id: null },
        metadata: { commandId: 'c', correlationId: 'c', by: {} },
      };
      return house.events.append(`gift-${id}`, [event], 0).then(
        () => true,
        () => false,
      );
    }),
  );
  await ask(house, bought);
  const redeemed = (await redeeming).filter(Boolean).length;
  await ended(house, 1);
  const amount = (await house.all('GiftsRefunded')).reduce(
    (sum, { data }) => sum + (data as { amount: number }).amount,
    0,
  );
  assert.is(amount, (40 - redeemed) * 250);
  for (const id of bought.giftIds) assert.is((await house.types(`gift-${id}`)).length, 2);
});

test('cancels no gift after waking behind a process that left it', async ({ house }) => {
  await house.work();
  const processors = house.process();
  const bought = await settled(house, [{}, {}]);
  await processors.close();
  const [plain = '', used = ''] = bought.giftIds;
  const refundId = await ask(house, bought);
  const writer = openWriter(house.events, Date.now);
  const deps = {
    ...house.deps,
    now: Date.now,
    retryPolicy: RETRY_POLICY,
    writer,
    wallets: walletPayments(house.events, writer),
    mayAct: () => undefined,
  };
  let asleep = false;
  const sleeper: EventStore = {
    ...house.events,
    append: async (stream, all, expected) => {
      if (!asleep && stream === `gift-${used}`) {
        asleep = true;
        await house.append(stream, 'GiftRedeemed', { redemption_id: 'x', merchant_id: null });
        await refund(deps, bought.transactionId, refundId);
        await house.append(stream, 'GiftUnredeemed', { redemption_id: 'x' });
      }
      return house.events.append(stream, all, expected);
    },
  };
  const mayAct = (): void => {
    if (asleep) throw new UnavailableError('the work has passed to another process');
  };
  await refund(
    { ...deps, events: sleeper, writer: openWriter(sleeper, Date.now), mayAct },
    bought.transactionId,
    refundId,
  ).catch((error: unknown) => {
    assert.instance(error, UnavailableError);
  });
  assert.equal(
    (await house.all('GiftsRefunded')).map(({ data }) => (data as { gift_ids: string[] }).gift_ids),
    [[plain]],
  );
  assert.equal(await house.types(`gift-${used}`), ['GiftIssued', 'GiftRedeemed', 'GiftUnredeemed']);
});

test('records and parks what the provider refuses', async ({ house }) => {
  const { bought, refundId } = await refused(house);
  assert.equal((await house.all('RefundRefused'))[0]?.data, {
    refund_id: refundId,
    attempt: 1,
    amount: 250,
    provider: 'simulated',
    code: 'expired_or_canceled_card',
  });
  const [parked] = await house.all('WorkParked');
  if (parked === undefined) throw new Error('not parked');
  assert.is(parked.stream, 'parked-refund');
  const { event_id, ...told } = parked.data as { event_id: string };
  assert.equal(told, {
    entity: refundId,
    transaction_id: bought.transactionId,
    step: 'refund',
    cause: 'simulated refuses the refund: expired_or_canceled_card',
    times: 1,
  });
  // The last event of the refund that its process had seen.
  assert.ok((await house.all('RefundStarted', 'RefundRefused')).some(({ id }) => id === event_id));
});

test('names who asked for another attempt as its cause', async ({ house }) => {
  const { bought, refundId } = await refused(house);
  await house.append(
    'parked-refund',
    'WorkRetried',
    { entity: refundId, transaction_id: bought.transactionId, step: 'refund', times: 1, reason: 'ticket 1' },
    undefined,
    'a later request',
  );
  await ended(house, 2);
  const [first, second] = (await house.all('RefundStarted')).map(({ metadata }) => metadata);
  assert.is(first?.causationId, (await house.all('RefundRequested'))[0]?.id);
  assert.is(second?.causationId, (await house.all('WorkRetried'))[0]?.id);
  assert.equal([first?.correlationId, second?.correlationId], [house.correlationId, house.correlationId]);
});

test('a retry that is asked for while the refusal is still being parked is made', async ({ house }) => {
  await house.work();
  let retried = false;
  const events: EventStore = {
    ...house.events,
    append: async (stream, all, expected) => {
      const outcome = await house.events.append(stream, all, expected);
      if (!retried && all[0]?.type === 'WorkParked') {
        retried = true;
        const { entity, transaction_id, step, times } = all[0].data as {
          entity: string;
          transaction_id: string;
          step: string;
          times: number;
        };
        await house.append('parked-refund', 'WorkRetried', { entity, transaction_id, step, times, reason: 'ticket 1' });
        // The feed has told of it before its parking is answered.
        await sleep(50);
      }
      return outcome;
    },
  };
  house.process({ events });
  const bought = await settled(house, [{}], { reference: 'pm_card_refundFail' });
  await ask(house, bought);
  await ended(house, 2);
  assert.equal(
    (await house.all('RefundRefused')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
});

test('never more than is left of the charge, whatever else was given back', async ({ house }) => {
  await house.work();
  house.process();
  const bought = await settled(house, [{}, {}]);
  await house.append(`transaction-${bought.transactionId}`, 'RefundStarted', {
    refund_id: 'elsewhere',
    attempt: 1,
    gift_ids: [],
    kept: {},
    amount: 300,
    provider: 'simulated',
    charge_id: `ch_simulated_${bought.transactionId}`,
    payment_reference: 'x',
  });
  await ended(house, 1);
  await ask(house, bought);
  await ended(house, 2);
  assert.match(JSON.stringify(await house.all('WorkParked')), '500 pence are more than the 200 pence left');
});

test('makes a new attempt where one a day old never reached the provider', async ({ house }) => {
  const bought = await house.buy([{}]);
  const stream = `transaction-${bought.transactionId}`;
  await house.append(stream, 'PaymentCharged', { amount: 250, provider: 'simulated', charge_id: 'c' });
  await house.append(`gift-${bought.giftIds[0]}`, 'GiftIssued', {
    transaction_id: bought.transactionId,
    index: 0,
    receiver: {},
  });
  await house.append(
    stream,
    'RefundStarted',
    {
      refund_id: 'old',
      attempt: 1,
      gift_ids: [],
      kept: {},
      amount: 250,
      provider: 'simulated',
      charge_id: 'c',
      payment_reference: 'x',
    },
    hoursAgo(21),
  );
  const asked: string[] = [];
  const bus = {
    ...house.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      asked.push(subject),
      house.bus.request<R>(subject, payload, options)
    ),
  };
  await house.work();
  house.process({ bus });
  await ended(house, 1);
  assert.equal(asked, [SUBJECTS.lookUpRefund, SUBJECTS.lookUpRefund, SUBJECTS.refund]);
  assert.equal(
    (await house.all('RefundStarted')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
  assert.is(await refOf(house), 're_simulated_old_2');
});

test('makes no new attempt where money was given back at the provider meanwhile', async ({ house }) => {
  const bought = await house.buy([{}, {}]);
  const stream = `transaction-${bought.transactionId}`;
  await house.append(stream, 'PaymentCharged', { amount: 500, provider: 'simulated', charge_id: 'c' });
  for (const [index, id] of bought.giftIds.entries())
    await house.append(`gift-${id}`, 'GiftIssued', { transaction_id: bought.transactionId, index, receiver: {} });
  await house.append(
    stream,
    'RefundStarted',
    {
      refund_id: 'old',
      attempt: 1,
      gift_ids: [],
      kept: {},
      amount: 250,
      provider: 'simulated',
      charge_id: 'c',
      payment_reference: 'x',
    },
    hoursAgo(21),
  );
  await house.append(stream, 'RefundedAtProvider', { provider: 'simulated', charge_id: 'c', amount: 250, total: 250 });
  await house.work();
  house.process();
  await ended(house, 1);
  assert.match(
    (await house.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
    'money was given back at simulated itself since this refund of 250 pence was last asked for',
  );
  assert.is((await house.all('RefundStarted')).length, 1);
});

test('gives nothing back again that was refunded by hand during an outage', async ({ house }) => {
  await withRealProviders(async (providers) => {
    await house.work(await providers.workers(house.deps.records));
    house.process();
    const one = await settled(house, [{}, {}]);
    let refused = 0;
    providers.stripe.fault = ({ method, path }) => {
      if (method !== 'POST' || path !== '/v1/refunds') return undefined;
      refused++;
      return {
        kind: 'answer',
        answer: { status: 401, body: { error: { type: 'invalid_request_error', message: 'Expired API Key' } } },
      };
    };
    await ask(house, one, one.giftIds.slice(0, 1));
    await house.until(async () => refused > 1);
    providers.stripe.refundByHand(providers.stripe.intents[0]?.id ?? '', 250);
    providers.stripe.fault = () => undefined;
    await ended(house, 1);
    assert.is(providers.stripe.refunded(one.transactionId), 250);
    assert.match(
      (await house.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
      'money was given back at stripe itself since this refund of 250 pence was last asked for',
    );
    assert.is((await house.all('RefundStarted')).length, 1);
  });
});

test('gives nothing back on a retry that was refunded by hand without a webhook', async ({ house }) => {
  await withRealProviders(async (providers) => {
    await house.work(await providers.workers(house.deps.records));
    house.process();
    const one = await settled(house, [{}, {}]);
    const refuse = ({ method, path }: { method: string; path: string }) =>
      method === 'POST' && path === '/v1/refunds'
        ? ({
            kind: 'answer',
            answer: {
              status: 400,
              body: { error: { type: 'invalid_request_error', code: 'balance_insufficient', message: 'Not now' } },
            },
          } as const)
        : undefined;
    providers.stripe.fault = refuse;
    const refundId = await ask(house, one, one.giftIds.slice(0, 1));
    await ended(house, 1);
    providers.stripe.fault = () => undefined;
    const retry = (): Promise<void> =>
      house.append('parked-refund', 'WorkRetried', {
        entity: refundId,
        transaction_id: one.transactionId,
        step: 'refund',
        times: 1,
        reason: 'x',
      });
    providers.stripe.refundByHand(providers.stripe.intents[0]?.id ?? '', 250);
    await retry();
    await ended(house, 2);
    assert.is(providers.stripe.refunded(one.transactionId), 250);
    assert.match(
      (await house.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
      'money was given back at stripe itself since this refund of 250 pence was last asked for',
    );
  });
});

test('a refund that was made before the log was restored from a backup is found, not made again', async ({ house }) => {
  await withRealProviders(async (providers) => {
    const bought = await house.buy([{}, {}], { at: hoursAgo(31) });
    const { transactionId, giftIds } = bought;
    await house.work(await providers.workers(house.deps.records));
    const first = house.process();
    await house.until(async () => (await house.types(`transaction-${transactionId}`)).includes('PaymentCharged'));
    await first.close();
    // As the log before was when it asked, more than a day ago: of that the backup knows the request alone.
    await house.append(
      `transaction-${transactionId}`,
      'RefundRequested',
      { refund_id: 'r', gift_ids: giftIds.slice(0, 1), voided: false, reason: 'x' },
      hoursAgo(30),
    );
    const intent = providers.stripe.intents[0];
    providers.stripe.refunds.push({
      id: 're_before',
      object: 'refund',
      amount: 250,
      currency: 'gbp',
      charge: null,
      payment_intent: intent?.id ?? '',
      metadata: { refund_id: 'r', attempt: '1', transaction_id: transactionId },
      created: 1,
      status: 'succeeded',
    });
    // That another refund was asked for just now says nothing of this one's age.
    await house.append(`transaction-${transactionId}`, 'RefundRequested', {
      refund_id: 'other',
      gift_ids: giftIds.slice(1),
      voided: false,
      reason: 'x',
    });
    house.process();
    await ended(house, 2);
    assert.is(providers.stripe.refunded(transactionId), 500);
    const refs = new Map(
      (await house.all('GiftsRefunded')).map(({ data }) => [
        (data as { refund_id: string }).refund_id,
        (data as { refund_ref: string }).refund_ref,
      ]),
    );
    assert.is(refs.get('r'), 're_before');
  });
});

test('refunds no gift of a dispute that has not blocked it yet', async ({ house }) => {
  await house.work();
  const first = house.process();
  const bought = await settled(house, [{}, {}]);
  await first.close();
  await house.append(`transaction-${bought.transactionId}`, 'DisputeOpened', {
    provider: 'simulated',
    dispute_id: 'dp_1',
    amount: 500,
    reason: 'fraudulent',
  });
  const refundId = await ask(house, bought);
  house.process();
  await ended(house, 1);
  assert.equal(
    (await house.all('NothingRefunded')).map(({ data }) => data),
    [{ refund_id: refundId, kept: { disputed: [...bought.giftIds] } }],
  );
});

for (const moment of ['before', 'after'] as const) {
  test(`dying ${moment} any one effect gives back once`, async ({ house }) => {
    await withRealProviders(async (providers) => {
      await house.work(await providers.workers(house.deps.records));
      const deaths = await everyKillPoint(house, async (part, at) => {
        const prelude = part.process({ leaseMs: 90 });
        const one = await settled(part, [{}, {}]);
        await prelude.close();
        const done = async (): Promise<boolean> =>
          (await house.types(`transaction-${one.transactionId}`)).includes('GiftsRefunded');
        const doomed = mortal(part.deps, at, moment);
        const dying = part.process({ ...doomed.deps, leaseMs: 90 });
        await ask(part, one);
        await house.until(async () => doomed.dead || (await done()));
        const died = doomed.dead;
        const next = part.process({ leaseMs: 90 });
        await house.until(done);
        await Promise.all([dying.close(), next.close()]);
        const where = `died ${moment} effect ${at}`;
        assert.is(providers.stripe.refunded(one.transactionId), 500, where);
        assert.is(
          providers.stripe.refunds.filter(({ metadata }) => metadata['transaction_id'] === one.transactionId).length,
          1,
          where,
        );
        for (const id of one.giftIds)
          assert.equal(await house.types(`gift-${id}`), ['GiftIssued', 'GiftCancelled'], where);
        assert.equal(
          (await house.types(`transaction-${one.transactionId}`)).slice(3),
          ['RefundRequested', 'RefundStarted', 'GiftsRefunded'],
          where,
        );
        return died;
      });
      assert.ok(deaths >= 4, `a refund has ${deaths} effects`);
      assert.equal(await house.all('WorkParked'), []);
    });
  });
}

test('a bus that loses, repeats and delays, two processes: each once', async ({ house }) => {
  await withRealProviders(async (providers) => {
    await house.work(await providers.workers(house.deps.records));
    house.process({ bus: faultyBus(house.bus, 7) });
    house.process({ bus: faultyBus(house.bus, 8) });
    const bought = await Promise.all(Array.from({ length: 10 }, () => settled(house, [{}, {}, {}])));
    await Promise.all(
      bought.flatMap((one) => [ask(house, one, one.giftIds.slice(0, 1)), ask(house, one, one.giftIds.slice(1, 2))]),
    );
    await ended(house, 20);
    await sleep(60);
    for (const { transactionId } of bought) assert.is(providers.stripe.refunded(transactionId), 500);
    assert.is(providers.stripe.refunds.length, 20);
    assert.equal(await house.all('WorkParked'), []);
  });
});

test.run();
