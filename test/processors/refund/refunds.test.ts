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
import { type TestInstallation, phone, sentIn } from '../../support/service/installation.js';
import { type Bought, hoursAgo } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { crashable } from '../../support/faults/crashable.js';
import { withRealProviders } from '../../support/providers/realProviders.js';

const test = installationSuite('refunds');

let serial = 0;
/** Asks for a refund as the command does. */
async function ask(
  installation: TestInstallation,
  { transactionId, giftIds }: Bought,
  gifts: readonly string[] = giftIds,
  voided = false,
): Promise<string> {
  const refundId = `refund-${++serial}`;
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: refundId,
    gift_ids: gifts,
    voided,
    reason: 'wrong product',
  });
  return refundId;
}
async function settled(
  installation: TestInstallation,
  receivers: readonly object[],
  options: { reference?: string; price?: number } = {},
): Promise<Bought> {
  const bought = await installation.buy(receivers, options);
  await installation.until(async () =>
    (await Promise.all(bought.giftIds.map((id) => installation.types(`gift-${id}`)))).every(
      (types) => types.length > 0,
    ),
  );
  return bought;
}
const ended = (installation: TestInstallation, count: number): Promise<void> =>
  installation.until(
    async () => (await installation.all('GiftsRefunded', 'NothingRefunded', 'WorkParked')).length === count,
  );
/** Bought, with a refund that the provider has refused. */
async function refused(
  installation: TestInstallation,
): Promise<{ readonly bought: Bought; readonly refundId: string }> {
  await installation.work();
  installation.process();
  const bought = await settled(installation, [{}], { reference: 'pm_card_refundFail' });
  const refundId = await ask(installation, bought);
  await ended(installation, 1);
  return { bought, refundId };
}

const refOf = async (installation: TestInstallation): Promise<string | undefined> =>
  (await installation.all('GiftsRefunded')).map(({ data }) => (data as { refund_ref: string }).refund_ref)[0];

test("cancels what it can, and gives back exactly the cancelled gifts' share", async ({ installation }) => {
  await installation.work();
  installation.process();
  const bought = await settled(installation, [{}, {}, {}, {}], { price: 250 });
  const [plain = '', redeemed = '', vouchered = '', disputed = ''] = bought.giftIds;
  await installation.append(`gift-${redeemed}`, 'GiftRedeemed', { redemption_id: 'x', merchant_id: null });
  await installation.append(`gift-${vouchered}`, 'VoucherAssigned', { voucher_id: 'v' });
  await installation.append(`gift-${disputed}`, 'GiftBlocked', { cause: 'dispute:dp_1', reason: '' });
  const refundId = await ask(installation, bought);
  await ended(installation, 1);
  const kept = { redeemed: [redeemed], code_out: [vouchered], disputed: [disputed] };
  const [started] = await installation.all('RefundStarted');
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
  const [given] = await installation.all('GiftsRefunded');
  assert.equal(given?.data, {
    refund_id: refundId,
    attempt: 1,
    gift_ids: [plain],
    amount: 250,
    provider: 'simulated',
    refund_ref: `re_simulated_${refundId}_1`,
  });
  assert.is(given?.metadata.simulated, true);
  assert.equal((await installation.events.read(`gift-${plain}`)).at(-1)?.data, {
    reason: 'refunded',
    refund_id: refundId,
  });
  const [requested] = await installation.all('RefundRequested');
  const [cancelled] = await installation.all('GiftCancelled');
  assert.is(cancelled?.metadata.causationId, requested?.id);
  assert.equal([requested?.id, started?.id].includes(given?.metadata.causationId), true);

  const voided = await ask(installation, bought, [vouchered, redeemed], true);
  await ended(installation, 2);
  assert.equal((await installation.all('GiftsRefunded')).at(-1)?.data, {
    refund_id: voided,
    attempt: 1,
    gift_ids: [vouchered],
    amount: 250,
    provider: 'simulated',
    refund_ref: `re_simulated_${voided}_1`,
  });
  const nothing = await ask(installation, bought, [redeemed]);
  await ended(installation, 3);
  assert.equal((await installation.all('NothingRefunded'))[0]?.data, {
    refund_id: nothing,
    kept: { redeemed: [redeemed] },
  });
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
async function nobodyIsTold(installation: TestInstallation, events: EventStore): Promise<void> {
  await installation.work();
  installation.process({ events });
  await installation.buy([phone(1), phone(2)]);
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(
    (await installation.all('NotificationSent', 'NotificationFailed')).map(
      ({ data }) => (data as { cause?: string }).cause,
    ),
    ['gift is cancelled', 'gift is cancelled'],
  );
  assert.is(sentIn(installation), 0);
}

test('sends no notification of a gift cancelled in the append that issues it', async ({ installation }) => {
  await nobodyIsTold(installation, cancelling(installation.events));
});

test('nor where the reader of the log sees its issue long before its end', async ({ installation }) => {
  const cancelled = cancelling(installation.events, (issue) => ({
    ...issue,
    metadata: { ...issue.metadata, commandId: 'provider-refund-t' },
  }));
  await nobodyIsTold(installation, {
    ...cancelled,
    async *follow(...args) {
      for await (const { events: all, position, caughtUp } of installation.events.follow(...args)) {
        for (const event of all.slice(0, -1)) {
          yield { events: [event], position: event.position, caughtUp: false };
          await sleep(100);
        }
        yield { events: all.slice(-1), position, caughtUp };
      }
    },
  });
});

test('notifies of gifts only after a refund has decided on them', async ({ installation }) => {
  await installation.work();
  const bought = await installation.buy([phone(1), phone(2)]);
  const events: EventStore = {
    ...installation.events,
    append: async (stream, all, expected) => {
      const [issue] = all;
      // The refund is asked for before anything is issued, and is slower than the telling would be.
      if (issue?.type === 'PaymentCharged') {
        const outcome = await installation.events.append(stream, all, expected);
        await ask(installation, bought);
        return outcome;
      }
      if (issue?.type === 'GiftCancelled') await sleep(60);
      const used = issue?.type === 'GiftIssued' && stream === `gift-${bought.giftIds[1]}`;
      return installation.events.append(
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
  installation.process({ events, retryPolicy: { ...installation.deps.retryPolicy, retryAtMostMs: 60_000 } });
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 2);
  const [cancelled = '', kept = ''] = bought.giftIds;
  assert.equal(await installation.types(`notification-${cancelled}`), ['NotificationFailed']);
  assert.equal(await installation.types(`notification-${kept}`), ['NotificationStarted', 'NotificationSent']);
  assert.is(sentIn(installation), 1);
  const [begun] = await installation.all('NotificationStarted');
  const [decided] = await installation.all('RefundStarted');
  assert.ok(begun !== undefined && decided !== undefined && begun.position > decided.position);
});

/** The id of the event that issued a gift. */
const issueOf = async (installation: TestInstallation, giftId: string): Promise<string | undefined> =>
  (await installation.all('GiftIssued')).find(({ stream }) => stream === `gift-${giftId}`)?.id;

test('sends no notification of a gift that was cancelled before', async ({ installation }) => {
  const { transactionId, giftIds } = await installation.buy([phone(1), phone(2)]);
  const [first = '', second = ''] = giftIds;
  await installation.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'simulated',
    charge_id: 'c',
  });
  for (const [index, id] of giftIds.entries())
    await installation.append(`gift-${id}`, 'GiftIssued', {
      transaction_id: transactionId,
      index,
      receiver: { phone_id: `hash${index}` },
    });
  await installation.work();
  await sleep(2);
  await installation.append(`notification-${second}`, 'NotificationStarted', {
    transaction_id: transactionId,
    channel: 'sms',
    attempt: 1,
    asked_by: await issueOf(installation, second),
  });
  for (const id of giftIds) await installation.append(`gift-${id}`, 'GiftCancelled', { reason: 'x', refund_id: 'r' });
  installation.process();
  await installation.until(async () => (await installation.all('NotificationFailed')).length === 2);
  const failed = await installation.all('NotificationFailed');
  assert.equal(
    Object.fromEntries(failed.map(({ stream, data }) => [stream, data])),
    Object.fromEntries(
      await Promise.all(
        giftIds.map(async (id) => [
          `notification-${id}`,
          { cause: 'gift is cancelled', attempt: 1, asked_by: await issueOf(installation, id) },
        ]),
      ),
    ),
  );
  assert.equal(await installation.types(`notification-${first}`), ['NotificationFailed']);
  assert.equal(
    installation.lines.filter(({ msg }) => msg === 'simulated notification sent'),
    [],
  );
});

test('a gift that is paid for and not issued yet is issued and cancelled', async ({ installation }) => {
  const bought = await installation.buy([{}, {}]);
  await installation.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'wallet',
    charge_id: 'c',
  });
  await installation.append('wallet-pm_card_visa', 'WalletToppedUp', { top_up_id: 'a', amount: 500 });
  await installation.append('wallet-pm_card_visa', 'WalletDebited', {
    transaction_id: bought.transactionId,
    amount: 500,
  });
  const refundId = await ask(installation, bought);
  const [requested] = await installation.all('RefundRequested');
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  const events: EventStore = {
    ...installation.events,
    async append(stream, appended, expected) {
      // Who issues the gifts of a purchase comes too late for each.
      if (appended[0]?.type === 'GiftIssued' && appended[0].metadata.causationId !== requested?.id) await over;
      return installation.events.append(stream, appended, expected);
    },
  };
  installation.process({ events });
  await ended(installation, 1);
  end();
  for (const id of bought.giftIds)
    assert.equal(await installation.types(`gift-${id}`), ['GiftIssued', 'GiftCancelled']);
  assert.equal((await installation.events.read('wallet-pm_card_visa')).at(-1)?.data, {
    transaction_id: bought.transactionId,
    amount: 500,
    cause: refundId,
  });
  assert.is(await refOf(installation), `wallet-${refundId}`);
});

test('a race with a redeem has one winner', async ({ installation }) => {
  await installation.work();
  installation.process();
  const bought = await settled(
    installation,
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
      return installation.events.append(`gift-${id}`, [event], 0).then(
        () => true,
        () => false,
      );
    }),
  );
  await ask(installation, bought);
  const redeemed = (await redeeming).filter(Boolean).length;
  await ended(installation, 1);
  const amount = (await installation.all('GiftsRefunded')).reduce(
    (sum, { data }) => sum + (data as { amount: number }).amount,
    0,
  );
  assert.is(amount, (40 - redeemed) * 250);
  for (const id of bought.giftIds) assert.is((await installation.types(`gift-${id}`)).length, 2);
});

test('cancels no gift after waking behind a process that left it', async ({ installation }) => {
  await installation.work();
  const processors = installation.process();
  const bought = await settled(installation, [{}, {}]);
  await processors.close();
  const [plain = '', used = ''] = bought.giftIds;
  const refundId = await ask(installation, bought);
  const writer = openWriter(installation.events, Date.now);
  const deps = {
    ...installation.deps,
    now: Date.now,
    retryPolicy: RETRY_POLICY,
    writer,
    wallets: walletPayments(installation.events, writer),
    mayAct: () => undefined,
  };
  let asleep = false;
  const sleeper: EventStore = {
    ...installation.events,
    append: async (stream, all, expected) => {
      if (!asleep && stream === `gift-${used}`) {
        asleep = true;
        await installation.append(stream, 'GiftRedeemed', { redemption_id: 'x', merchant_id: null });
        await refund(deps, bought.transactionId, refundId);
        await installation.append(stream, 'GiftUnredeemed', { redemption_id: 'x' });
      }
      return installation.events.append(stream, all, expected);
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
    (await installation.all('GiftsRefunded')).map(({ data }) => (data as { gift_ids: string[] }).gift_ids),
    [[plain]],
  );
  assert.equal(await installation.types(`gift-${used}`), ['GiftIssued', 'GiftRedeemed', 'GiftUnredeemed']);
});

test('records and parks what the provider refuses', async ({ installation }) => {
  const { bought, refundId } = await refused(installation);
  assert.equal((await installation.all('RefundRefused'))[0]?.data, {
    refund_id: refundId,
    attempt: 1,
    amount: 250,
    provider: 'simulated',
    code: 'expired_or_canceled_card',
  });
  const [parked] = await installation.all('WorkParked');
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
  assert.ok((await installation.all('RefundStarted', 'RefundRefused')).some(({ id }) => id === event_id));
});

test('names who asked for another attempt as its cause', async ({ installation }) => {
  const { bought, refundId } = await refused(installation);
  await installation.append(
    'parked-refund',
    'WorkRetried',
    { entity: refundId, transaction_id: bought.transactionId, step: 'refund', times: 1, reason: 'ticket 1' },
    undefined,
    'a later request',
  );
  await ended(installation, 2);
  const [first, second] = (await installation.all('RefundStarted')).map(({ metadata }) => metadata);
  assert.is(first?.causationId, (await installation.all('RefundRequested'))[0]?.id);
  assert.is(second?.causationId, (await installation.all('WorkRetried'))[0]?.id);
  assert.equal([first?.correlationId, second?.correlationId], [installation.correlationId, installation.correlationId]);
});

test('a retry that is asked for while the refusal is still being parked is made', async ({ installation }) => {
  await installation.work();
  let retried = false;
  const events: EventStore = {
    ...installation.events,
    append: async (stream, all, expected) => {
      const outcome = await installation.events.append(stream, all, expected);
      if (!retried && all[0]?.type === 'WorkParked') {
        retried = true;
        const { entity, transaction_id, step, times } = all[0].data as {
          entity: string;
          transaction_id: string;
          step: string;
          times: number;
        };
        await installation.append('parked-refund', 'WorkRetried', {
          entity,
          transaction_id,
          step,
          times,
          reason: 'ticket 1',
        });
        // The feed has told of it before its parking is answered.
        await sleep(50);
      }
      return outcome;
    },
  };
  installation.process({ events });
  const bought = await settled(installation, [{}], { reference: 'pm_card_refundFail' });
  await ask(installation, bought);
  await ended(installation, 2);
  assert.equal(
    (await installation.all('RefundRefused')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
});

test('never more than is left of the charge, whatever else was given back', async ({ installation }) => {
  await installation.work();
  installation.process();
  const bought = await settled(installation, [{}, {}]);
  await installation.append(`transaction-${bought.transactionId}`, 'RefundStarted', {
    refund_id: 'elsewhere',
    attempt: 1,
    gift_ids: [],
    kept: {},
    amount: 300,
    provider: 'simulated',
    charge_id: `ch_simulated_${bought.transactionId}`,
    payment_reference: 'x',
  });
  await ended(installation, 1);
  await ask(installation, bought);
  await ended(installation, 2);
  assert.match(JSON.stringify(await installation.all('WorkParked')), '500 pence are more than the 200 pence left');
});

test('makes a new attempt where one a day old never reached the provider', async ({ installation }) => {
  const bought = await installation.buy([{}]);
  const stream = `transaction-${bought.transactionId}`;
  await installation.append(stream, 'PaymentCharged', { amount: 250, provider: 'simulated', charge_id: 'c' });
  await installation.append(`gift-${bought.giftIds[0]}`, 'GiftIssued', {
    transaction_id: bought.transactionId,
    index: 0,
    receiver: {},
  });
  await installation.append(
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
  const requested: string[] = [];
  const bus = {
    ...installation.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      requested.push(subject),
      installation.bus.request<R>(subject, payload, options)
    ),
  };
  await installation.work();
  installation.process({ bus });
  await ended(installation, 1);
  assert.equal(requested, [SUBJECTS.lookUpRefund, SUBJECTS.lookUpRefund, SUBJECTS.refund]);
  assert.equal(
    (await installation.all('RefundStarted')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
  assert.is(await refOf(installation), 're_simulated_old_2');
});

test('makes no new attempt where money was given back at the provider meanwhile', async ({ installation }) => {
  const bought = await installation.buy([{}, {}]);
  const stream = `transaction-${bought.transactionId}`;
  await installation.append(stream, 'PaymentCharged', { amount: 500, provider: 'simulated', charge_id: 'c' });
  for (const [index, id] of bought.giftIds.entries())
    await installation.append(`gift-${id}`, 'GiftIssued', {
      transaction_id: bought.transactionId,
      index,
      receiver: {},
    });
  await installation.append(
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
  await installation.append(stream, 'RefundedAtProvider', {
    provider: 'simulated',
    charge_id: 'c',
    amount: 250,
    total: 250,
  });
  await installation.work();
  installation.process();
  await ended(installation, 1);
  assert.match(
    (await installation.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
    'money was given back at simulated itself since this refund of 250 pence was last asked for',
  );
  assert.is((await installation.all('RefundStarted')).length, 1);
});

test('gives nothing back again that was refunded by hand during an outage', async ({ installation }) => {
  await withRealProviders(async (providers) => {
    await installation.work(await providers.workers(installation.deps.records));
    installation.process();
    const one = await settled(installation, [{}, {}]);
    let refused = 0;
    providers.stripe.fault = ({ method, path }) => {
      if (method !== 'POST' || path !== '/v1/refunds') return undefined;
      refused++;
      return {
        kind: 'answer',
        answer: { status: 401, body: { error: { type: 'invalid_request_error', message: 'Expired API Key' } } },
      };
    };
    await ask(installation, one, one.giftIds.slice(0, 1));
    await installation.until(async () => refused > 1);
    providers.stripe.refundByHand(providers.stripe.intents[0]?.id ?? '', 250);
    providers.stripe.fault = () => undefined;
    await ended(installation, 1);
    assert.is(providers.stripe.refunded(one.transactionId), 250);
    assert.match(
      (await installation.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
      'money was given back at stripe itself since this refund of 250 pence was last asked for',
    );
    assert.is((await installation.all('RefundStarted')).length, 1);
    // The provider's report of it, which came meanwhile, counted it as this refund.
    await installation.until(async () => (await installation.all('ProviderRefundSettled')).length > 0);
    const [settlement] = await installation.all('ProviderRefundSettled');
    assert.equal(settlement?.data, { total: 250, cancelled: 1, vouchered: 0, difference: 0 });
    assert.equal(await installation.types(`gift-${one.giftIds[1]}`), ['GiftIssued'], 'it costs no other gift');
  });
});

test('gives nothing back on a retry that was refunded by hand without a webhook', async ({ installation }) => {
  await withRealProviders(async (providers) => {
    await installation.work(await providers.workers(installation.deps.records));
    installation.process();
    const one = await settled(installation, [{}, {}]);
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
    const refundId = await ask(installation, one, one.giftIds.slice(0, 1));
    await ended(installation, 1);
    providers.stripe.fault = () => undefined;
    const retry = (): Promise<void> =>
      installation.append('parked-refund', 'WorkRetried', {
        entity: refundId,
        transaction_id: one.transactionId,
        step: 'refund',
        times: 1,
        reason: 'x',
      });
    providers.stripe.refundByHand(providers.stripe.intents[0]?.id ?? '', 250);
    await retry();
    await ended(installation, 2);
    assert.is(providers.stripe.refunded(one.transactionId), 250);
    assert.match(
      (await installation.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause).join(),
      'money was given back at stripe itself since this refund of 250 pence was last asked for',
    );
  });
});

test('a refund that was made before the log was restored from a backup is found, not made again', async ({
  installation,
}) => {
  await withRealProviders(async (providers) => {
    const bought = await installation.buy([{}, {}], { at: hoursAgo(31) });
    const { transactionId, giftIds } = bought;
    await installation.work(await providers.workers(installation.deps.records));
    const first = installation.process();
    await installation.until(async () =>
      (await installation.types(`transaction-${transactionId}`)).includes('PaymentCharged'),
    );
    await first.close();
    // As the log before was when it asked, more than a day ago: of that the backup knows the request alone.
    await installation.append(
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
    await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
      refund_id: 'other',
      gift_ids: giftIds.slice(1),
      voided: false,
      reason: 'x',
    });
    installation.process();
    await ended(installation, 2);
    assert.is(providers.stripe.refunded(transactionId), 500);
    const refs = new Map(
      (await installation.all('GiftsRefunded')).map(({ data }) => [
        (data as { refund_id: string }).refund_id,
        (data as { refund_ref: string }).refund_ref,
      ]),
    );
    assert.is(refs.get('r'), 're_before');
  });
});

test('refunds no gift of a dispute that has not blocked it yet', async ({ installation }) => {
  await installation.work();
  const first = installation.process();
  const bought = await settled(installation, [{}, {}]);
  await first.close();
  await installation.append(`transaction-${bought.transactionId}`, 'DisputeOpened', {
    provider: 'simulated',
    dispute_id: 'dp_1',
    amount: 500,
    reason: 'fraudulent',
  });
  const refundId = await ask(installation, bought);
  installation.process();
  await ended(installation, 1);
  assert.equal(
    (await installation.all('NothingRefunded')).map(({ data }) => data),
    [{ refund_id: refundId, kept: { disputed: [...bought.giftIds] } }],
  );
});

for (const moment of ['before', 'after'] as const) {
  test(`dying ${moment} any one effect gives back once`, async ({ installation }) => {
    await withRealProviders(async (providers) => {
      await installation.work(await providers.workers(installation.deps.records));
      const deaths = await everyKillPoint(installation, async (part, at) => {
        const prelude = part.process({ leaseMs: 90 });
        const one = await settled(part, [{}, {}]);
        await prelude.close();
        const done = async (): Promise<boolean> =>
          (await installation.types(`transaction-${one.transactionId}`)).includes('GiftsRefunded');
        const doomed = crashable(part.deps, at, moment);
        const dying = part.process({ ...doomed.deps, leaseMs: 90 });
        await ask(part, one);
        await installation.until(async () => doomed.dead || (await done()));
        const died = doomed.dead;
        const next = part.process({ leaseMs: 90 });
        await installation.until(done);
        await Promise.all([dying.close(), next.close()]);
        const where = `died ${moment} effect ${at}`;
        assert.is(providers.stripe.refunded(one.transactionId), 500, where);
        assert.is(
          providers.stripe.refunds.filter(({ metadata }) => metadata['transaction_id'] === one.transactionId).length,
          1,
          where,
        );
        for (const id of one.giftIds)
          assert.equal(await installation.types(`gift-${id}`), ['GiftIssued', 'GiftCancelled'], where);
        assert.equal(
          (await installation.types(`transaction-${one.transactionId}`)).slice(3),
          ['RefundRequested', 'RefundStarted', 'GiftsRefunded'],
          where,
        );
        return died;
      });
      assert.ok(deaths >= 4, `a refund has ${deaths} effects`);
      assert.equal(await installation.all('WorkParked'), []);
    });
  });
}

test('a bus that loses, repeats and delays, two processes: each once', async ({ installation }) => {
  await withRealProviders(async (providers) => {
    await installation.work(await providers.workers(installation.deps.records));
    installation.process({ bus: faultyBus(installation.bus, 7) });
    installation.process({ bus: faultyBus(installation.bus, 8) });
    const bought = await Promise.all(Array.from({ length: 10 }, () => settled(installation, [{}, {}, {}])));
    await Promise.all(
      bought.flatMap((one) => [
        ask(installation, one, one.giftIds.slice(0, 1)),
        ask(installation, one, one.giftIds.slice(1, 2)),
      ]),
    );
    await ended(installation, 20);
    await sleep(60);
    for (const { transactionId } of bought) assert.is(providers.stripe.refunded(transactionId), 500);
    assert.is(providers.stripe.refunds.length, 20);
    assert.equal(await installation.all('WorkParked'), []);
  });
});

test.run();
