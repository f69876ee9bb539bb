import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../src/commands/context.js';
import { notePaymentNews } from '../../src/commands/notePaymentNews.js';
import type { ParkedDeps } from '../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../src/commands/parkedWork.js';
import { Refusal } from '../../src/domain/refusal.js';
import { type Bus, RemoteError } from '../../src/ports/bus.js';
import type { EventStore } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { type House, numberOf, phone, sentIn } from '../support/service/house.js';
import { houseSuite } from '../support/service/houseSuite.js';
import { mortal } from '../support/faults/mortal.js';
import { rejects } from '../support/assertions/rejects.js';

const test = houseSuite('parked work');

const context = (): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: new Date().toISOString(),
});
/** As support works while no read model is there. */
const desk = (house: House): ParkedDeps => ({
  events: house.events,
  parked: { getMany: async (ids: readonly string[]) => ids.map(() => undefined) } as ParkedDeps['parked'],
  gifts: { get: async () => undefined },
});
const parkedTimes = async (house: House): Promise<number[]> =>
  (await house.all('WorkParked')).map(({ data }) => (data as { times: number }).times);
const checkpointAt = async (house: House): Promise<string | undefined> =>
  (await house.deps.records.get<{ position: string }>('checkpoint/process-managers'))?.value.position;

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
const impatient = (house: House): object => ({ ...house.deps.retryPolicy, attempts: 2, giveUpMs: 30 });

test('charges, issues and notifies on a retry; parks a vain one again with the count', async ({ house }) => {
  await house.work();
  let broken = true;
  const bus = answering(house.bus, 'payments.charge', () =>
    broken ? Promise.resolve({ outcome: 'impossible', cause: 'the account is closed' }) : undefined,
  );
  house.process({ bus });
  const { transactionId, giftIds } = await house.buy([phone(1), phone(2)]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  // Others went on meanwhile, so that the checkpoint has gone past it.
  broken = false;
  await house.buy([phone(3)]);
  await house.until(async () => sentIn(house) === 1);
  broken = true;
  await retryParked(desk(house), transactionId, context(), 'is it open again?');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(house), [1, 2]);
  broken = false;
  await retryParked(desk(house), transactionId, context(), 'it is');
  await house.until(async () => (await house.all('NotificationSent')).length === 3);
  assert.is(sentIn(house), 3);
  assert.equal(await house.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
  for (const giftId of giftIds)
    assert.equal(await house.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationSent']);
  assert.equal(
    (await house.all('WorkRetried')).map(({ data, metadata }) => [
      (data as { reason: string }).reason,
      metadata.by.user,
    ]),
    [
      ['is it open again?', 'sue'],
      ['it is', 'sue'],
    ],
  );
  const charged = (await house.all('PaymentCharged')).find(({ stream }) => stream === `transaction-${transactionId}`);
  const [, retried] = await house.all('WorkRetried');
  assert.is(house.lines.filter(({ msg }) => msg === 'parked: it could not be done').length, 2);
  assert.ok(charged !== undefined && retried !== undefined && charged.position > retried.position);
});

test('issues the gifts of a charge that is confirmed while it is being parked', async ({ house }) => {
  await house.work();
  const charges: object[] = [];
  const bus = answering(house.bus, 'payments.charge', ({ transaction_id, amount }) => {
    const news = { provider: 'p', kind: 'succeeded', charge_id: 'c1', amount: amount as number } as const;
    charges.push(news);
    return notePaymentNews(house.events, transaction_id as string, news, context()).then(() => ({
      outcome: 'impossible',
      cause: 'the account is closed',
    }));
  });
  const process = house.process({ bus });
  const { transactionId, giftIds } = await house.buy([phone(1), phone(2)]);
  await house.until(async () => (await house.all('NotificationSent')).length === 2 && process.status().open === 0);
  assert.equal([charges.length, sentIn(house), await parkedTimes(house)], [1, 2, [1]]);
  const parkedAt = (await house.all('WorkParked'))[0]?.position ?? '';
  const chargedAt = (await house.all('PaymentCharged'))[0]?.position ?? '';
  assert.ok(chargedAt < parkedAt, 'told of before it was given up');
  for (const giftId of giftIds) assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued']);
  assert.equal(await house.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
});

test("does a retry in the next process, also from the log's beginning", async ({ house }) => {
  await house.work();
  const dead = answering(house.bus, 'payments.charge', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
  );
  const first = house.process({ bus: dead });
  const { transactionId, giftIds } = await house.buy([phone(1), {}]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await first.close();
  await retryParked(desk(house), transactionId, context(), 'open again');
  const second = house.process();
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  await second.close();
  await house.deps.records.delete('checkpoint/process-managers');
  const end = await house.events.end();
  const third = house.process();
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 3,
  );
  await house.until(async () => third.status().open === 0);
  await third.close();
  assert.is(await house.events.end(), end, 'nothing is done again');
  assert.is((await checkpointAt(house)) === end, true);
  for (const giftId of giftIds) assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued']);
  assert.is(sentIn(house), 1);
});

test('looks an unknown notification up on a retry, and never sends it blindly', async ({ house }) => {
  await house.work();
  const lookups: Record<string, unknown>[] = [];
  let found: object = { outcome: 'unknown' };
  let sends = 0;
  const lost = answering(house.bus, 'notifications.send', () => {
    sends++;
    return Promise.reject(new UnavailableError('lost', { outcomeUnknown: true }));
  });
  const bus = answering(lost, 'notifications.lookup', (payload) => {
    lookups.push(payload);
    return Promise.resolve(found);
  });
  house.process({ bus, retryPolicy: impatient(house) });
  const {
    giftIds: [giftId = ''],
  } = await house.buy([phone(1)]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await retryParked(desk(house), giftId, context(), 'look again');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(house), [1, 2]);
  const before = lookups.length;
  found = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
  await retryParked(desk(house), giftId, context(), 'the provider says it was sent');
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  assert.is(sends, 1);
  assert.is(lookups.length, before + 1);
  assert.equal(
    [lookups.at(-1)?.['gift_id'], lookups.at(-1)?.['attempt'], lookups.at(-1)?.['to']],
    [giftId, undefined, [numberOf(1)]],
  );
  assert.equal(await house.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationSent']);
});

test('sends a notification that reached no worker on its retry, started or not', async ({ house }) => {
  house.contacts.set('odd', { name: 'Odd', phone_number: '+447700900009', device_tokens: [], locale: null });
  const workers = await house.work();
  let broken = true;
  const bus = answering(house.bus, 'notifications.send', () =>
    broken ? Promise.reject(new RemoteError('always in trouble')) : undefined,
  );
  const contact = async (id: string): Promise<Awaited<ReturnType<House['deps']['contact']>>> => {
    if (id === 'odd' && broken) throw new TypeError('odd');
    return house.deps.contact(id);
  };
  house.process({ bus, contact, retryPolicy: impatient(house) });
  const {
    giftIds: [first = '', second = ''],
  } = await house.buy([phone(1), { user_id: 'odd' }]);
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.equal(await house.types(`notification-${second}`), []);
  broken = false;
  for (const giftId of [first, second]) await retryParked(desk(house), giftId, context(), 'mended');
  await house.until(async () => sentIn(house) === 2);
  await house.until(async () => (await house.all('NotificationSent')).length === 2);
  assert.equal(await house.types(`notification-${second}`), ['NotificationStarted', 'NotificationSent']);
  await workers.close();
});

test('stops nothing but the parked entity, and retries several in parallel', async ({ house }) => {
  await house.work();
  let broken = true;
  const bus = answering(house.bus, 'payments.charge', (payload) =>
    broken && payload['payment_reference'] === 'bad'
      ? Promise.resolve({ outcome: 'impossible', cause: 'bad' })
      : undefined,
  );
  house.process({ bus });
  const bad = await Promise.all(
    Array.from({ length: 8 }, (_, n) => house.buy([phone(n), phone(n + 50)], { reference: 'bad' })),
  );
  await house.until(async () => (await house.all('WorkParked')).length === 8);
  broken = false;
  const good = Array.from({ length: 8 }, (_, n) => house.buy([phone(n + 100)]));
  await Promise.all([
    ...good,
    ...bad.map(({ transactionId }) => retryParked(desk(house), transactionId, context(), 'go')),
  ]);
  await house.until(async () => sentIn(house) === 24);
  await house.until(async () => (await house.all('NotificationSent')).length === 24);
  assert.is((await house.all('PaymentCharged')).length, 16);
  assert.is((await house.all('GiftIssued')).length, 24);
});

test('a purchase that was parked while its gifts were issued goes on where it was', async ({ house }) => {
  await house.work();
  let broken = true;
  let parkedAlone = '';
  const events: EventStore = {
    ...house.events,
    append: async (...args) => {
      if (broken && args[0].startsWith('gift-') && args[0] > 'gift-8') throw new TypeError('no room');
      return house.events.append(...args);
    },
  };
  const bus = answering(house.bus, 'notifications.send', (payload) => {
    if (!broken) return undefined;
    // One of those that are issued is parked by itself, the others are told.
    parkedAlone ||= payload['gift_id'] as string;
    return payload['gift_id'] === parkedAlone
      ? Promise.resolve({ outcome: 'impossible', cause: 'senseless' })
      : undefined;
  });
  house.process({ events, bus, retryPolicy: { ...house.deps.retryPolicy, attempts: 4 } });
  const { transactionId } = await house.buy(Array.from({ length: 24 }, (_, n) => phone(n)));
  await house.until(async () => (await house.all('WorkParked')).some(({ stream }) => stream === 'parked-purchase'));
  assert.is(
    (await house.all('WorkParked')).filter(({ stream }) => stream === 'parked-purchase').length,
    1,
    'parked once, however many gifts could not be issued',
  );
  broken = false;
  await retryParked(desk(house), transactionId, context(), 'there is room');
  await house.until(async () => (await house.all('GiftIssued')).length === 24);
  const alone = (await house.all('WorkParked')).filter(({ stream }) => stream === 'parked-notification').length;
  await house.until(async () => (await house.all('NotificationSent')).length === 24 - alone);
  assert.is(sentIn(house), 24 - alone);
  if (alone === 1) {
    await retryParked(desk(house), parkedAlone, context(), 'makes sense now');
    await house.until(async () => sentIn(house) === 24);
  }
});

for (const when of ['while its process runs', 'while none runs'] as const) {
  test(`declines a charge discarded ${when}, and never asks for it again`, async ({ house }) => {
    await house.work();
    let charges = 0;
    const bus = answering(house.bus, 'payments.charge', () => {
      charges++;
      return Promise.resolve({ outcome: 'impossible', cause: 'the account is closed' });
    });
    const process = house.process({ bus });
    const { transactionId, giftIds } = await house.buy([phone(1)]);
    await house.until(async () => (await house.all('WorkParked')).length === 1);
    if (when === 'while none runs') await process.close();
    const given = context();
    await discardParked(desk(house), transactionId, given, 'bought again with another card');
    await discardParked(desk(house), transactionId, given, 'bought again with another card');
    await discardParked(desk(house), transactionId, context(), 'again');
    assert.equal(await house.types(`transaction-${transactionId}`), [
      'GiftsPurchased',
      'ChargeStarted',
      'PaymentDeclined',
    ]);
    assert.equal((await house.all('PaymentDeclined'))[0]?.data, { provider: 'support', code: 'discarded' });
    const refused = await rejects(
      retryParked(desk(house), transactionId, context(), 'after all'),
      Refusal,
      /discarded/,
    );
    assert.is(refused.code, 'work_discarded');
    const next = house.process();
    await house.until(async () => next.status().open === 0);
    await next.close();
    assert.equal([charges, sentIn(house), await house.types(`gift-${giftIds[0]}`)], [1, 0, []]);
  });
}

test('credits a wallet once where its paid charge is discarded', async ({ house }) => {
  const amount = 250;
  const { transactionId } = await house.buy([{}], { reference: 'wallet-1', price: amount });
  const wallet = 'wallet-wallet-1';
  await house.append(wallet, 'WalletToppedUp', { top_up_id: 'x', amount: 1_000 });
  await house.append(wallet, 'WalletDebited', { transaction_id: transactionId, amount });
  await house.append('parked-purchase', 'WorkParked', {
    entity: transactionId,
    transaction_id: transactionId,
    step: 'charge',
    cause: 'lost',
    event_id: 'e',
    times: 1,
  });
  const given = context();
  for (const one of [given, given, context()]) await discardParked(desk(house), transactionId, one, 'not wanted');
  assert.equal(await house.types(wallet), ['WalletToppedUp', 'WalletDebited', 'WalletCredited']);
  assert.equal(await house.types(`transaction-${transactionId}`), ['GiftsPurchased', 'PaymentDeclined']);
});

test('fails a discarded notification, and never sends it', async ({ house }) => {
  await house.work();
  const bus = answering(house.bus, 'notifications.send', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'senseless' }),
  );
  house.process({ bus });
  const {
    giftIds: [giftId = ''],
  } = await house.buy([phone(1)]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  const given = context();
  const { own } = await discardParked(desk(house), giftId, given, 'told by telephone');
  assert.equal(own?.data, { ...(own?.data as object), reason: 'told by telephone', times: 1 });
  assert.equal(await house.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationFailed']);
  assert.equal((await house.all('NotificationFailed'))[0]?.data, {
    cause: 'given up by support',
    attempt: 1,
    asked_by: (await house.all('GiftIssued'))[0]?.id,
  });
  assert.is((await discardParked(desk(house), giftId, given, 'told by telephone')).replayed, true);
  assert.is((await discardParked(desk(house), giftId, context(), 'again')).own, undefined);
  assert.is(sentIn(house), 0);
});

test('tries a refused refund once for each retry, also in the next process', async ({ house }) => {
  await house.work();
  const first = house.process();
  const { transactionId, giftIds } = await house.buy([{}], { reference: 'pm_card_refundFail' });
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await retryParked(desk(house), 'refund-1', context(), 'the bank says yes');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(house), [1, 2]);
  assert.equal(
    (await house.all('RefundRefused')).map(({ data }) => (data as { attempt: number }).attempt),
    [1, 2],
  );
  await first.close();
  await house.deps.records.delete('checkpoint/process-managers');
  const end = await house.events.end();
  const second = house.process();
  await house.until(async () => second.status().caughtUp && second.status().open === 0);
  assert.is(await house.events.end(), end);
  await discardParked(desk(house), 'refund-1', context(), 'paid by bank transfer');
  await retryParked(desk(house), 'refund-1', context(), 'it came back');
  await house.until(async () => (await house.all('WorkParked')).length === 3);
});

test("parks a refund that failed after it was given up, with the provider's code", async ({ house }) => {
  await house.work();
  const bus = answering(house.bus, 'payments.refund', () => Promise.reject(new RemoteError('no answer')));
  const lost = answering(bus, 'payments.lookupRefund', () => Promise.reject(new RemoteError('no answer')));
  const process = house.process({ bus: lost, retryPolicy: impatient(house) });
  const { transactionId, giftIds } = await house.buy([{}]);
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await discardParked(desk(house), 'refund-1', context(), 'it will have been made');
  await notePaymentNews(
    house.events,
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
  await house.until(async () => (await house.all('WorkParked')).length === 2 && process.status().open === 0);
  assert.match(JSON.stringify((await house.all('WorkParked'))[1]?.data), 'simulated refuses the refund: lost_card');
});

test('parks once though the append is stored late, and once more after a retry', async ({ house }) => {
  await house.work();
  const unknown: Parameters<EventStore['append']>[] = [];
  const events: EventStore = {
    ...house.events,
    append: async (...args) => {
      if (args[1][0]?.type !== 'WorkParked' || unknown.length === 3) return house.events.append(...args);
      unknown.push(args);
      throw new UnavailableError('nobody knows', { outcomeUnknown: true });
    },
  };
  house.process({ events });
  const { transactionId, giftIds } = await house.buy([{}], { reference: 'pm_card_refundFail' });
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  for (const args of unknown) await house.events.append(...args);
  assert.equal(await parkedTimes(house), [1]);
  await retryParked(desk(house), 'refund-1', context(), 'the bank says yes');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  for (const args of unknown) await house.events.append(...args);
  assert.equal(await parkedTimes(house), [1, 2]);
});

test('pays no refund again on a retry that was made by hand', async ({ house }) => {
  await house.work();
  const asked: unknown[] = [];
  const bus = answering(house.bus, 'payments.refund', (payload) => (asked.push(payload['refund_id']), undefined));
  house.process({ bus });
  const { transactionId, giftIds } = await house.buy([{}, {}, {}], { reference: 'pm_card_refundFail' });
  const [first = '', second = '', third = ''] = giftIds;
  await house.until(async () => (await house.all('GiftIssued')).length === 3);
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: [first],
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  const hears = async (total: number): Promise<unknown> =>
    notePaymentNews(
      house.events,
      transactionId,
      { provider: 'simulated', kind: 'refunded', charge_id: `ch_simulated_${transactionId}`, total },
      context(),
    );
  await hears(250);
  await house.until(async () => (await house.all('ProviderRefundSettled')).length === 1);
  assert.equal((await house.all('ProviderRefundSettled'))[0]?.data, {
    total: 250,
    cancelled: 1,
    vouchered: 0,
    difference: 0,
  });
  await retryParked(desk(house), 'refund-1', context(), 'the bank says yes');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.match(
    JSON.stringify((await house.all('WorkParked'))[1]?.data),
    'may be this one, so it is not asked for again',
  );
  assert.equal(asked, ['refund-1']);
  for (const id of [second, third]) assert.equal(await house.types(`gift-${id}`), ['GiftIssued']);
  // More than its own: that is another gift's.
  await hears(500);
  await house.until(async () => (await house.all('ProviderRefundSettled')).length === 2);
  assert.equal((await house.all('ProviderRefundSettled'))[1]?.data, {
    total: 500,
    cancelled: 2,
    vouchered: 0,
    difference: 0,
  });
  assert.equal(
    [await house.types(`gift-${second}`), await house.types(`gift-${third}`)],
    [['GiftIssued'], ['GiftIssued', 'GiftCancelled']],
  );
});

test('a retried refund that was over already is closed, and the checkpoint goes past it', async ({ house }) => {
  await house.work();
  const process = house.process();
  const { transactionId, giftIds } = await house.buy([{}]);
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'refund-1',
    gift_ids: giftIds,
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await house.all('GiftsRefunded')).length === 1);
  const parked = { entity: 'refund-1', transaction_id: transactionId, step: 'refund' };
  await house.append('parked-refund', 'WorkParked', {
    ...parked,
    cause: 'the answer came too late',
    event_id: 'x',
    times: 1,
  });
  await retryParked(desk(house), 'refund-1', context(), 'go');
  const end = await house.events.end();
  await house.until(async () => process.status().position === end && process.status().open === 0);
  await process.close();
  assert.is(await checkpointAt(house), end);
  assert.is((await house.all('GiftsRefunded')).length, 1);
});

test('parks a shortfall again on each retry until it is discarded', async ({ house }) => {
  await house.work();
  let broken = true;
  const events: EventStore = {
    ...house.events,
    append: async (...args) => {
      if (broken && args[1].some(({ type }) => type === 'GiftBlocked')) throw new TypeError('no room');
      return house.events.append(...args);
    },
  };
  house.process({ events, retryPolicy: impatient(house) });
  const {
    transactionId,
    giftIds: [giftId = ''],
  } = await house.buy([{}]);
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  await house.append(`gift-${giftId}`, 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await house.append(`transaction-${transactionId}`, 'RefundedAtProvider', {
    provider: 'simulated',
    charge_id: 'c',
    amount: 250,
    total: 250,
  });
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await retryParked(desk(house), transactionId, context(), 'look again');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  assert.equal(await parkedTimes(house), [1, 2]);
  assert.equal(
    (await house.all('WorkParked')).map(({ stream }) => stream),
    ['parked-refund', 'parked-refund'],
  );
  await discardParked(desk(house), transactionId, context(), 'written off');

  await house.append(`transaction-${transactionId}`, 'DisputeOpened', {
    provider: 'simulated',
    dispute_id: 'dp_1',
    amount: 250,
    reason: 'fraudulent',
  });
  await house.until(async () => (await house.all('WorkParked')).length === 3);
  broken = false;
  await retryParked(desk(house), 'dp_1', context(), 'there is room');
  await house.until(async () => (await house.all('DisputeSettled')).length === 1);
  assert.equal((await house.types(`gift-${giftId}`)).at(-1), 'GiftBlocked');
});

test('a purchase that the provider says is charged after it was parked goes on', async ({ house }) => {
  await house.work();
  const bus = answering(house.bus, 'payments.charge', () =>
    Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
  );
  house.process({ bus });
  const { transactionId } = await house.buy([phone(1), {}]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  await house.append(`transaction-${transactionId}`, 'PaymentCharged', { amount: 500, provider: 'p', charge_id: 'c' });
  await house.until(
    async () => (await house.all('GiftIssued')).length === 2 && (await house.all('NotificationSent')).length === 1,
  );
});

test('a process that dies at any moment of a retry loses nothing and repeats nothing', async ({ house }) => {
  await house.work();
  for (const moment of ['before', 'after'] as const) {
    for (let at = 1, died = true; died; at++) {
      const closed = answering(house.bus, 'payments.charge', () =>
        Promise.resolve({ outcome: 'impossible', cause: 'closed' }),
      );
      const first = house.process({ bus: closed, leaseMs: 60 });
      const parkedBefore = (await house.all('WorkParked')).length;
      const {
        transactionId,
        giftIds: [giftId = ''],
      } = await house.buy([phone(at)]);
      await house.until(async () => (await house.all('WorkParked')).length === parkedBefore + 1);
      await first.close();
      const doomed = mortal(house.deps, at, moment);
      const second = house.process({ ...doomed.deps, leaseMs: 60 });
      await retryParked(desk(house), transactionId, context(), 'go');
      const finished = async (): Promise<boolean> =>
        (await house.types(`notification-${giftId}`)).includes('NotificationSent');
      await house.until(async () => doomed.dead || (await finished()));
      died = doomed.dead;
      const third = house.process({ leaseMs: 60 });
      await house.until(finished);
      await Promise.all([second.close(), third.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        await house.types(`transaction-${transactionId}`),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
        where,
      );
      assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued'], where);
      assert.equal(await house.types(`notification-${giftId}`), ['NotificationStarted', 'NotificationSent'], where);
      assert.is(
        house.lines.filter(({ msg, gift }) => msg === 'simulated notification sent' && gift === giftId.slice(0, 6))
          .length,
        1,
        where,
      );
      if (!died) assert.ok(at > 5, `a retry has ${at - 1} effects`);
    }
  }
});

test.run();
