import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../src/commands/transact.js';
import { recordProviderEvent } from '../../src/commands/recordProviderEvent.js';
import type { ParkedDeps } from '../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../src/commands/parkedWork.js';
import { Refusal } from '../../src/domain/refusal.js';
import { type Bus, RemoteError } from '../../src/ports/bus.js';
import type { EventStore } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { type TestInstallation, numberOf, phone, sentIn } from '../support/service/installation.js';
import { installationSuite } from '../support/service/installationSuite.js';
import { crashable } from '../support/faults/crashable.js';
import { rejects } from '../support/assertions/rejects.js';

const test = installationSuite('parked work');

const context = (): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: new Date().toISOString(),
});
/** As support works while no read model is there. */
const desk = (installation: TestInstallation): ParkedDeps => ({
  events: installation.events,
  parked: { getMany: async (ids: readonly string[]) => ids.map(() => undefined) } as ParkedDeps['parked'],
  gifts: { get: async () => undefined },
});
const parkedTimes = async (installation: TestInstallation): Promise<number[]> =>
  (await installation.all('WorkParked')).map(({ data }) => (data as { times: number }).times);
const checkpointAt = async (installation: TestInstallation): Promise<string | undefined> =>
  (await installation.deps.records.get<{ position: string }>('checkpoint/process-managers'))?.value.position;

/** A bus whose answers to one subject are this function's, as long as it gives any. */
function answering(
  bus: Bus,
  subject: string,
  answer: (payload: Record<string, unknown>) => Promise<object> | undefined,
): Bus {
  return {
    ...bus,
    request: async <R>(to: string, payload: object, options: { timeoutMs: number }): Promise<R> => {
      const own = to === subject ? answer(payload as Record<string, unknown>) : undefined;
      return (own ?? bus.request(to, payload, options)) as Promise<R>;
    },
  };
}
const impatient = (installation: TestInstallation): object => ({
  ...installation.deps.retryPolicy,
  attempts: 2,
  giveUpMs: 30,
});

test('charges, issues and notifies on a retry; parks a vain one again with the count', async ({ installation }) => {
  await installation.work();
  let broken = true;
  const bus = answering(installation.bus, 'payments.charge', () =>
    broken ? Promise.resolve({ outcome: 'impossible', cause: 'the account is closed' }) : undefined,
  );
  installation.process({ bus });
  const { transactionId, giftIds } = await installation.buy([phone(1), phone(2)]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  // Others went on meanwhile, so that the checkpoint has gone past it.
  broken = false;
  await installation.buy([phone(3)]);
  await installation.until(async () => sentIn(installation) === 1);
  broken = true;
  await retryParked(desk(installation), transactionId, context(), 'is it open again?');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(installation), [1, 2]);
  broken = false;
  await retryParked(desk(installation), transactionId, context(), 'it is');
  await installation.until(async () => (await installation.all('NotificationSent')).length === 3);
  assert.is(sentIn(installation), 3);
  assert.equal(await installation.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
  for (const giftId of giftIds)
    assert.equal(await installation.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationSent']);
  assert.equal(
    (await installation.all('WorkRetried')).map(({ data, metadata }) => [
      (data as { reason: string }).reason,
      metadata.by.user,
    ]),
    [
      ['is it open again?', 'sue'],
      ['it is', 'sue'],
    ],
  );
  const charged = (await installation.all('PaymentCharged')).find(
    ({ stream }) => stream === `transaction-${transactionId}`,
  );
  const [, retried] = await installation.all('WorkRetried');
  assert.is(installation.lines.filter(({ msg }) => msg === 'parked: it could not be done').length, 2);
  assert.ok(charged !== undefined && retried !== undefined && charged.position > retried.position);
});

test('issues the gifts of a charge that is confirmed while it is being parked', async ({ installation }) => {
  await installation.work();
  const charges: object[] = [];
  const bus = answering(installation.bus, 'payments.charge', ({ transaction_id, amount }) => {
    const news = { provider: 'p', kind: 'succeeded', charge_id: 'c1', amount: amount as number } as const;
    charges.push(news);
    return recordProviderEvent(installation.events, transaction_id as string, news, context()).then(() => ({
      outcome: 'impossible',
      cause: 'the account is closed',
    }));
  });
  const process = installation.process({ bus });
  const { transactionId, giftIds } = await installation.buy([phone(1), phone(2)]);
  await installation.until(
    async () => (await installation.all('NotificationSent')).length === 2 && process.status().open === 0,
  );
  assert.equal([charges.length, sentIn(installation), await parkedTimes(installation)], [1, 2, [1]]);
  const parkedAt = (await installation.all('WorkParked'))[0]?.position ?? '';
  const chargedAt = (await installation.all('PaymentCharged'))[0]?.position ?? '';
  assert.ok(chargedAt < parkedAt, 'told of before it was given up');
  for (const giftId of giftIds) assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued']);
  assert.equal(await installation.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
});

test("does a retry in the next process, also from the log's beginning", async ({ installation }) => {
  await installation.work();
  const dead = answering(installation.bus, 'payments.charge', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
  );
  const first = installation.process({ bus: dead });
  const { transactionId, giftIds } = await installation.buy([phone(1), {}]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await first.close();
  await retryParked(desk(installation), transactionId, context(), 'open again');
  const second = installation.process();
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  await second.close();
  await installation.deps.records.delete('checkpoint/process-managers');
  const end = await installation.events.end();
  const third = installation.process();
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 3,
  );
  await installation.until(async () => third.status().open === 0);
  await third.close();
  assert.is(await installation.events.end(), end, 'nothing is done again');
  assert.is((await checkpointAt(installation)) === end, true);
  for (const giftId of giftIds) assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued']);
  assert.is(sentIn(installation), 1);
});

test('looks an unknown notification up on a retry, and never sends it blindly', async ({ installation }) => {
  await installation.work();
  const lookups: Record<string, unknown>[] = [];
  let found: object = { outcome: 'unknown' };
  let sends = 0;
  const lost = answering(installation.bus, 'notifications.send', () => {
    sends++;
    return Promise.reject(new UnavailableError('lost', { outcomeUnknown: true }));
  });
  const bus = answering(lost, 'notifications.lookup', (payload) => {
    lookups.push(payload);
    return Promise.resolve(found);
  });
  installation.process({ bus, retryPolicy: impatient(installation) });
  const {
    giftIds: [giftId = ''],
  } = await installation.buy([phone(1)]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await retryParked(desk(installation), giftId, context(), 'look again');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(installation), [1, 2]);
  const before = lookups.length;
  found = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
  await retryParked(desk(installation), giftId, context(), 'the provider says it was sent');
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  assert.is(sends, 1);
  assert.is(lookups.length, before + 1);
  assert.equal(
    [lookups.at(-1)?.['gift_id'], lookups.at(-1)?.['attempt'], lookups.at(-1)?.['to']],
    [giftId, undefined, [numberOf(1)]],
  );
  assert.equal(await installation.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationSent']);
});

test('sends a notification that reached no worker on its retry, started or not', async ({ installation }) => {
  installation.contacts.set('odd', { name: 'Odd', phone_number: '+447700900009', device_tokens: [], locale: null });
  const workers = await installation.work();
  let broken = true;
  const bus = answering(installation.bus, 'notifications.send', () =>
    broken ? Promise.reject(new RemoteError('always in trouble')) : undefined,
  );
  const contact = async (id: string): Promise<Awaited<ReturnType<TestInstallation['deps']['contact']>>> => {
    if (id === 'odd' && broken) throw new TypeError('odd');
    return installation.deps.contact(id);
  };
  installation.process({ bus, contact, retryPolicy: impatient(installation) });
  const {
    giftIds: [first = '', second = ''],
  } = await installation.buy([phone(1), { user_id: 'odd' }]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.equal(await installation.types(`notification-${second}`), []);
  broken = false;
  for (const giftId of [first, second]) await retryParked(desk(installation), giftId, context(), 'mended');
  await installation.until(async () => sentIn(installation) === 2);
  await installation.until(async () => (await installation.all('NotificationSent')).length === 2);
  assert.equal(await installation.types(`notification-${second}`), ['NotificationStarted', 'NotificationSent']);
  await workers.close();
});

test('stops nothing but the parked entity, and retries several in parallel', async ({ installation }) => {
  await installation.work();
  let broken = true;
  const bus = answering(installation.bus, 'payments.charge', (payload) =>
    broken && payload['payment_reference'] === 'bad'
      ? Promise.resolve({ outcome: 'impossible', cause: 'bad' })
      : undefined,
  );
  installation.process({ bus });
  const bad = await Promise.all(
    Array.from({ length: 8 }, (_, n) => installation.buy([phone(n), phone(n + 50)], { reference: 'bad' })),
  );
  await installation.until(async () => (await installation.all('WorkParked')).length === 8);
  broken = false;
  const good = Array.from({ length: 8 }, (_, n) => installation.buy([phone(n + 100)]));
  await Promise.all([
    ...good,
    ...bad.map(({ transactionId }) => retryParked(desk(installation), transactionId, context(), 'go')),
  ]);
  await installation.until(async () => sentIn(installation) === 24);
  await installation.until(async () => (await installation.all('NotificationSent')).length === 24);
  assert.is((await installation.all('PaymentCharged')).length, 16);
  assert.is((await installation.all('GiftIssued')).length, 24);
});

test('a purchase that was parked while its gifts were issued goes on where it was', async ({ installation }) => {
  await installation.work();
  let broken = true;
  let parkedAlone = '';
  const events: EventStore = {
    ...installation.events,
    append: async (...args) => {
      if (broken && args[0].startsWith('gift-') && args[0] > 'gift-8') throw new TypeError('no room');
      return installation.events.append(...args);
    },
  };
  const bus = answering(installation.bus, 'notifications.send', (payload) => {
    if (!broken) return undefined;
    // One of those that are issued is parked by itself, the others are told.
    parkedAlone ||= payload['gift_id'] as string;
    return payload['gift_id'] === parkedAlone
      ? Promise.resolve({ outcome: 'impossible', cause: 'senseless' })
      : undefined;
  });
  installation.process({ events, bus, retryPolicy: { ...installation.deps.retryPolicy, attempts: 4 } });
  const { transactionId } = await installation.buy(Array.from({ length: 24 }, (_, n) => phone(n)));
  await installation.until(async () =>
    (await installation.all('WorkParked')).some(({ stream }) => stream === 'parked-purchase'),
  );
  assert.is(
    (await installation.all('WorkParked')).filter(({ stream }) => stream === 'parked-purchase').length,
    1,
    'parked once, however many gifts could not be issued',
  );
  broken = false;
  await retryParked(desk(installation), transactionId, context(), 'there is room');
  await installation.until(async () => (await installation.all('GiftIssued')).length === 24);
  const alone = (await installation.all('WorkParked')).filter(({ stream }) => stream === 'parked-notification').length;
  await installation.until(async () => (await installation.all('NotificationSent')).length === 24 - alone);
  assert.is(sentIn(installation), 24 - alone);
  if (alone === 1) {
    await retryParked(desk(installation), parkedAlone, context(), 'makes sense now');
    await installation.until(async () => sentIn(installation) === 24);
  }
});

for (const when of ['while its process runs', 'while none runs'] as const) {
  test(`declines a charge discarded ${when}, and never asks for it again`, async ({ installation }) => {
    await installation.work();
    let charges = 0;
    const bus = answering(installation.bus, 'payments.charge', () => {
      charges++;
      return Promise.resolve({ outcome: 'impossible', cause: 'the account is closed' });
    });
    const process = installation.process({ bus });
    const { transactionId, giftIds } = await installation.buy([phone(1)]);
    await installation.until(async () => (await installation.all('WorkParked')).length === 1);
    if (when === 'while none runs') await process.close();
    const given = context();
    await discardParked(desk(installation), transactionId, given, 'bought again with another card');
    await discardParked(desk(installation), transactionId, given, 'bought again with another card');
    await discardParked(desk(installation), transactionId, context(), 'again');
    assert.equal(await installation.types(`transaction-${transactionId}`), [
      'GiftsPurchased',
      'ChargeStarted',
      'PaymentDeclined',
    ]);
    assert.equal((await installation.all('PaymentDeclined'))[0]?.data, { provider: 'support', code: 'discarded' });
    const refused = await rejects(
      retryParked(desk(installation), transactionId, context(), 'after all'),
      Refusal,
      /discarded/,
    );
    assert.is(refused.code, 'work_discarded');
    const next = installation.process();
    await installation.until(async () => next.status().open === 0);
    await next.close();
    assert.equal([charges, sentIn(installation), await installation.types(`gift-${giftIds[0]}`)], [1, 0, []]);
  });
}

test('credits a wallet once where its paid charge is discarded', async ({ installation }) => {
  const amount = 250;
  const { transactionId } = await installation.buy([{}], { reference: 'wallet-1', price: amount });
  const wallet = 'wallet-wallet-1';
  await installation.append(wallet, 'WalletToppedUp', { top_up_id: 'x', amount: 1_000 });
  await installation.append(wallet, 'WalletDebited', { transaction_id: transactionId, amount });
  await installation.append('parked-purchase', 'WorkParked', {
    entity: transactionId,
    transaction_id: transactionId,
    step: 'charge',
    cause: 'lost',
    event_id: 'e',
    times: 1,
  });
  const given = context();
  for (const one of [given, given, context()])
    await discardParked(desk(installation), transactionId, one, 'not wanted');
  assert.equal(await installation.types(wallet), ['WalletToppedUp', 'WalletDebited', 'WalletCredited']);
  assert.equal(await installation.types(`transaction-${transactionId}`), ['GiftsPurchased', 'PaymentDeclined']);
});

test('fails a discarded notification, and never sends it', async ({ installation }) => {
  await installation.work();
  const bus = answering(installation.bus, 'notifications.send', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'senseless' }),
  );
  installation.process({ bus });
  const {
    giftIds: [giftId = ''],
  } = await installation.buy([phone(1)]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  const given = context();
  const { own } = await discardParked(desk(installation), giftId, given, 'told by telephone');
  assert.equal(own?.data, { ...(own?.data as object), reason: 'told by telephone', times: 1 });
  assert.equal(await installation.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationFailed']);
  assert.equal((await installation.all('NotificationFailed'))[0]?.data, {
    cause: 'given up by support',
    attempt: 1,
    asked_by: (await installation.all('GiftIssued'))[0]?.id,
  });
  assert.is((await discardParked(desk(installation), giftId, given, 'told by telephone')).replayed, true);
  assert.is((await discardParked(desk(installation), giftId, context(), 'again')).own, undefined);
  assert.is(sentIn(installation), 0);
});

test('tries a refused refund once for each retry, also in the next process', async ({ installation }) => {
  await installation.work();
  const first = installation.process();
  const { transactionId, giftIds } = await installation.buy([{}], { reference: 'pm_card_refundFail' });
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await retryParked(desk(installation), 'refund-1', context(), 'the bank says yes');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(installation), [1, 2]);
  assert.equal(
    (await installation.all('RefundRefused')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
  await first.close();
  await installation.deps.records.delete('checkpoint/process-managers');
  const end = await installation.events.end();
  const second = installation.process();
  await installation.until(async () => second.status().caughtUp && second.status().open === 0);
  assert.is(await installation.events.end(), end);
  await discardParked(desk(installation), 'refund-1', context(), 'paid by bank transfer');
  await retryParked(desk(installation), 'refund-1', context(), 'it came back');
  await installation.until(async () => (await installation.all('WorkParked')).length === 3);
});

test("parks a refund that failed after it was given up, with the provider's code", async ({ installation }) => {
  await installation.work();
  const bus = answering(installation.bus, 'payments.refund', () => Promise.reject(new RemoteError('no answer')));
  const lost = answering(bus, 'payments.lookupRefund', () => Promise.reject(new RemoteError('no answer')));
  const process = installation.process({ bus: lost, retryPolicy: impatient(installation) });
  const { transactionId, giftIds } = await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await discardParked(desk(installation), 'refund-1', context(), 'it will have been made');
  await recordProviderEvent(
    installation.events,
    transactionId,
    {
      provider: 'simulated',
      kind: 'refund failed',
      refund_id: 'refund-1',
      attempt: 1,
      refund_ref: 're_1',
      code: 'lost_card',
    },
    context(),
  );
  await installation.until(
    async () => (await installation.all('WorkParked')).length === 2 && process.status().open === 0,
  );
  assert.match(
    JSON.stringify((await installation.all('WorkParked'))[1]?.data),
    'simulated refuses the refund: lost_card',
  );
});

test('parks once though the append is stored late, and once more after a retry', async ({ installation }) => {
  await installation.work();
  const unknown: Parameters<EventStore['append']>[] = [];
  const events: EventStore = {
    ...installation.events,
    append: async (...args) => {
      if (args[1][0]?.type !== 'WorkParked' || unknown.length === 3) return installation.events.append(...args);
      unknown.push(args);
      throw new UnavailableError('nobody knows', { outcomeUnknown: true });
    },
  };
  installation.process({ events });
  const { transactionId, giftIds } = await installation.buy([{}], { reference: 'pm_card_refundFail' });
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  for (const args of unknown) await installation.events.append(...args);
  assert.equal(await parkedTimes(installation), [1]);
  await retryParked(desk(installation), 'refund-1', context(), 'the bank says yes');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  for (const args of unknown) await installation.events.append(...args);
  assert.equal(await parkedTimes(installation), [1, 2]);
});

test('pays no refund again on a retry that was made by hand', async ({ installation }) => {
  await installation.work();
  const requested: unknown[] = [];
  const bus = answering(
    installation.bus,
    'payments.refund',
    (payload) => (requested.push(payload['refund_id']), undefined),
  );
  installation.process({ bus });
  const { transactionId, giftIds } = await installation.buy([{}, {}, {}], { reference: 'pm_card_refundFail' });
  const [first = '', second = '', third = ''] = giftIds;
  await installation.until(async () => (await installation.all('GiftIssued')).length === 3);
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: [first],
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  const hears = async (total: number): Promise<unknown> =>
    recordProviderEvent(
      installation.events,
      transactionId,
      { provider: 'simulated', kind: 'refunded', charge_id: `ch_simulated_${transactionId}`, total },
      context(),
    );
  await hears(250);
  await installation.until(async () => (await installation.all('ProviderRefundSettled')).length === 1);
  assert.equal((await installation.all('ProviderRefundSettled'))[0]?.data, {
    total: 250,
    cancelled: 1,
    vouchered: 0,
    difference: 0,
  });
  await retryParked(desk(installation), 'refund-1', context(), 'the bank says yes');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.match(
    JSON.stringify((await installation.all('WorkParked'))[1]?.data),
    'may be this one, so it is not asked for again',
  );
  assert.equal(requested, ['refund-1']);
  for (const id of [second, third]) assert.equal(await installation.types(`gift-${id}`), ['GiftIssued']);
  // More than its own: that is another gift's.
  await hears(500);
  await installation.until(async () => (await installation.all('ProviderRefundSettled')).length === 2);
  assert.equal((await installation.all('ProviderRefundSettled'))[1]?.data, {
    total: 500,
    cancelled: 2,
    vouchered: 0,
    difference: 0,
  });
  assert.equal(
    [await installation.types(`gift-${second}`), await installation.types(`gift-${third}`)],
    [['GiftIssued'], ['GiftIssued', 'GiftCancelled']],
  );
});

test('a retried refund that was over already is closed, and the checkpoint goes past it', async ({ installation }) => {
  await installation.work();
  const process = installation.process();
  const { transactionId, giftIds } = await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await installation.all('GiftsRefunded')).length === 1);
  const parked = { entity: 'refund-1', transaction_id: transactionId, step: 'refund' };
  await installation.append('parked-refund', 'WorkParked', {
    ...parked,
    cause: 'the answer came too late',
    event_id: 'x',
    times: 1,
  });
  await retryParked(desk(installation), 'refund-1', context(), 'go');
  const end = await installation.events.end();
  await installation.until(async () => process.status().position === end && process.status().open === 0);
  await process.close();
  assert.is(await checkpointAt(installation), end);
  assert.is((await installation.all('GiftsRefunded')).length, 1);
});

test('parks a shortfall again on each retry until it is discarded', async ({ installation }) => {
  await installation.work();
  let broken = true;
  const events: EventStore = {
    ...installation.events,
    append: async (...args) => {
      if (broken && args[1].some(({ type }) => type === 'GiftBlocked')) throw new TypeError('no room');
      return installation.events.append(...args);
    },
  };
  installation.process({ events, retryPolicy: impatient(installation) });
  const {
    transactionId,
    giftIds: [giftId = ''],
  } = await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  await installation.append(`gift-${giftId}`, 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await installation.append(`transaction-${transactionId}`, 'RefundedAtProvider', {
    provider: 'simulated',
    charge_id: 'c',
    amount: 250,
    total: 250,
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await retryParked(desk(installation), transactionId, context(), 'look again');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(installation), [1, 2]);
  assert.equal(
    (await installation.all('WorkParked')).map(({ stream }) => stream),
    ['parked-refund', 'parked-refund'],
  );
  await discardParked(desk(installation), transactionId, context(), 'written off');

  await installation.append(`transaction-${transactionId}`, 'DisputeOpened', {
    provider: 'simulated',
    dispute_id: 'dp_1',
    amount: 250,
    reason: 'fraudulent',
  });
  await installation.until(async () => (await installation.all('WorkParked')).length === 3);
  broken = false;
  await retryParked(desk(installation), 'dp_1', context(), 'there is room');
  await installation.until(async () => (await installation.all('DisputeSettled')).length === 1);
  assert.equal((await installation.types(`gift-${giftId}`)).at(-1), 'GiftBlocked');
});

test('a purchase that the provider says is charged after it was parked goes on', async ({ installation }) => {
  await installation.work();
  const bus = answering(installation.bus, 'payments.charge', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
  );
  installation.process({ bus });
  const { transactionId } = await installation.buy([phone(1), {}]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  await installation.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'p',
    charge_id: 'c',
  });
  await installation.until(
    async () =>
      (await installation.all('GiftIssued')).length === 2 && (await installation.all('NotificationSent')).length === 1,
  );
});

test('a process that dies at any moment of a retry loses nothing and repeats nothing', async ({ installation }) => {
  await installation.work();
  for (const moment of ['before', 'after'] as const) {
    for (let at = 1, died = true; died; at++) {
      const closed = answering(installation.bus, 'payments.charge', () =>
        Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
      );
      const first = installation.process({ bus: closed, leaseMs: 60 });
      const parkedBefore = (await installation.all('WorkParked')).length;
      const {
        transactionId,
        giftIds: [giftId = ''],
      } = await installation.buy([phone(at)]);
      await installation.until(async () => (await installation.all('WorkParked')).length === parkedBefore + 1);
      await first.close();
      const doomed = crashable(installation.deps, at, moment);
      const second = installation.process({ ...doomed.deps, leaseMs: 60 });
      await retryParked(desk(installation), transactionId, context(), 'go');
      const finished = async (): Promise<boolean> =>
        (await installation.types(`notification-${giftId}`)).includes('NotificationSent');
      await installation.until(async () => doomed.dead || (await finished()));
      died = doomed.dead;
      const third = installation.process({ leaseMs: 60 });
      await installation.until(finished);
      await Promise.all([second.close(), third.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        await installation.types(`transaction-${transactionId}`),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
        where,
      );
      assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued'], where);
      assert.equal(
        await installation.types(`notification-${giftId}`),
        ['NotificationStarted', 'NotificationSent'],
        where,
      );
      assert.is(
        installation.lines.filter(
          ({ msg, gift }) => msg === 'simulated notification sent' && gift === giftId.slice(0, 6),
        ).length,
        1,
        where,
      );
      if (!died) assert.ok(at > 5, `a retry has ${at - 1} effects`);
    }
  }
});

test.run();
