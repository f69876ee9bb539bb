import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Bus, RemoteError } from '../../src/ports/bus.js';
import { ConflictError, type EventStore } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { ChargeReply } from '../../src/messages/payments.js';
import { faultyBus } from '../support/faults/faultyBus.js';
import { hoursAgo, type House, phone, sentIn } from '../support/service/house.js';
import { houseSuite } from '../support/service/houseSuite.js';

const test = houseSuite('process managers during failures');

const parked = async (house: House): Promise<{ stream: string; entity: string; step: string; cause: string }[]> =>
  (await house.all('WorkParked')).map(({ stream, data }) => ({
    ...(data as { entity: string; step: string; cause: string }),
    stream,
  }));

/** The bus with the answers of some subjects replaced. */
function answering(bus: Bus, replaced: Readonly<Record<string, (payload: never) => Promise<object>>>): Bus {
  return {
    ...bus,
    request: async <R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> => {
      const replacement = replaced[subject];
      return (
        replacement === undefined ? bus.request(subject, payload, options) : replacement(payload as never)
      ) as Promise<R>;
    },
  };
}

test('does everything once over a bus that loses, repeats, reorders and delays', async ({ house }) => {
  await house.work();
  house.process({ bus: faultyBus(house.bus, 42) });
  const bought = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      house.buy([phone(n), phone(n + 100), {}], n % 4 === 0 ? { reference: 'pm_card_chargeDeclined' } : {}),
    ),
  );
  await house.until(async () => (await house.all('NotificationSent')).length === 18);
  await sleep(100);
  assert.is(sentIn(house), 18);
  for (const [n, { transactionId }] of bought.entries()) {
    assert.equal(await house.types(`transaction-${transactionId}`), [
      'GiftsPurchased',
      'ChargeStarted',
      n % 4 === 0 ? 'PaymentDeclined' : 'PaymentCharged',
    ]);
  }
  assert.equal(await parked(house), []);
});

test('parks work that fails for good with its cause, and stops no other work', async ({ house }) => {
  await house.work();
  const bus = answering(house.bus, {
    'notifications.send': async (request: { to: string[]; gift_id: string }) => {
      if (request.to[0] === '+447700900001') throw new RemoteError('always in trouble');
      return { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
    },
  });
  const first = house.process({ bus, retryPolicy: { ...house.deps.retryPolicy, giveUpMs: 50 } });
  const { transactionId, giftIds } = await house.buy([phone(1), phone(2)]);
  await house.buy([phone(3)]);
  await house.until(
    async () => (await house.all('NotificationSent')).length === 2 && (await parked(house)).length === 1,
  );
  const [one] = await parked(house);
  assert.equal(one, {
    ...one,
    stream: 'parked-notification',
    entity: giftIds[0],
    transaction_id: transactionId,
    step: 'notify',
    cause: 'RemoteError: always in trouble',
  });
  await first.close();
  for (const { key } of await house.deps.records.list('checkpoint')) await house.deps.records.delete(key);
  const end = await house.events.end();
  house.process();
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await sleep(50);
  assert.equal(await house.events.end(), end);
});

test('parks a notification with an unknown outcome, and never sends it again', async ({ house }) => {
  const { transactionId, giftIds } = await house.buy([phone(1)]);
  await house.append(`transaction-${transactionId}`, 'PaymentCharged', { amount: 250, provider: 'p', charge_id: 'c' });
  await house.append(`gift-${giftIds[0]}`, 'GiftIssued', {
    transaction_id: transactionId,
    index: 0,
    receiver: { phone_id: 'hash1' },
  });
  await house.append(`notification-${giftIds[0]}`, 'NotificationStarted', {
    transaction_id: transactionId,
    channel: 'sms',
    attempt: 1,
    asked_by: (await house.all('GiftIssued'))[0]?.id,
  });
  // The workers' ledger begins only now: it can't tell what was sent before.
  await sleep(2);
  await house.work();
  house.process({ retryPolicy: { ...house.deps.retryPolicy, attempts: 3 } });
  await house.until(async () => (await parked(house)).length === 1);
  assert.match((await parked(house))[0]?.cause ?? '', 'nobody knows');
  assert.is(sentIn(house), 0);
});

test('records the outcome that the provider is found to have', async ({ house }) => {
  await house.work();
  const answers = [
    { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false },
    { outcome: 'failed', cause: 'blocked', simulated: false },
  ];
  const bus = answering(house.bus, {
    'notifications.send': async () => {
      throw new UnavailableError('lost', { outcomeUnknown: true });
    },
    'notifications.lookup': async () => answers.shift() ?? { outcome: 'unknown' },
  });
  house.process({ bus });
  await house.buy([phone(1), phone(2)]);
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(
    (await house.all('NotificationFailed')).map(({ data }) => (data as { cause?: string }).cause),
    ['blocked'],
  );
});

test('fails a receiver who has lost every address since', async ({ house }) => {
  house.contacts.set('bea', { name: 'Bea', phone_number: '+447700900001', device_tokens: [], locale: null });
  await house.work();
  const bus = answering(house.bus, {
    'notifications.send': async () => {
      house.contacts.delete('bea');
      throw new UnavailableError('lost', { outcomeUnknown: true });
    },
  });
  house.process({ bus });
  await house.buy([{ user_id: 'bea' }]);
  await house.until(async () => (await house.all('NotificationFailed')).length === 1);
  assert.equal((await house.all('NotificationFailed'))[0]?.data, {
    cause: 'no address',
    attempt: 1,
    asked_by: (await house.all('GiftIssued'))[0]?.id,
  });
});

test('looks an old purchase up before it is charged, as in a restored log', async ({ house }) => {
  await house.work();
  const asked: string[] = [];
  const bus = {
    ...house.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      asked.push(subject),
      house.bus.request<R>(subject, payload, options)
    ),
  };
  const before = await house.buy([{}], { at: hoursAgo(21) });
  await house.deps.records.put(`charge/${before.transactionId}`, {
    outcome: 'charged',
    provider: 'simulated',
    charge_id: 'ch_before',
    simulated: true,
  } satisfies ChargeReply);
  const processors = house.process({ bus });
  const chargeOf = async (): Promise<unknown> => (await house.all('PaymentCharged')).at(-1)?.data;
  await house.until(async () => (await chargeOf()) !== undefined);
  assert.equal(
    [await chargeOf(), asked.splice(0)],
    [{ amount: 250, provider: 'simulated', charge_id: 'ch_before' }, ['payments.lookup']],
  );
  await processors.close();
  const never = await house.buy([{}], { at: hoursAgo(21) });
  house.process({ bus });
  await house.until(async () => (await house.all('PaymentCharged')).length === 2);
  assert.equal(
    [await chargeOf(), asked],
    [
      { amount: 250, provider: 'simulated', charge_id: `ch_simulated_${never.transactionId}` },
      ['payments.lookup', 'payments.charge'],
    ],
  );
});

test('parks a charge of another amount than the purchase costs', async ({ house }) => {
  const charged = (amount: number): ChargeReply => ({
    outcome: 'charged',
    provider: 'p',
    charge_id: 'ch_1',
    amount,
    simulated: false,
  });
  let amount = 200;
  house.process({
    bus: answering(house.bus, {
      'payments.charge': async () => charged(amount),
      'payments.lookup': async () => charged(amount),
    }),
  });
  const { transactionId } = await house.buy([{}]);
  await house.until(async () => (await parked(house)).length === 1);
  assert.match(
    (await parked(house))[0]?.cause ?? '',
    /^p took 200 pence for this transaction \(ch_1\), which costs 250 pence/,
  );
  assert.equal(await house.types(`transaction-${transactionId}`), ['GiftsPurchased', 'ChargeStarted']);
  amount = 250;
  await house.append('parked-purchase', 'WorkRetried', {
    entity: transactionId,
    transaction_id: transactionId,
    step: 'charge',
    times: 1,
    reason: 'x',
  });
  await house.until(async () => (await house.all('PaymentCharged')).length === 1);
});

test('looks a charge of the future up after the clock was set back', async ({ house }) => {
  await house.work();
  const asked: string[] = [];
  const bus = {
    ...house.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      asked.push(subject),
      house.bus.request<R>(subject, payload, options)
    ),
  };
  const started = async (hours: number): Promise<string> => {
    const { transactionId } = await house.buy([{}]);
    await house.append(
      `transaction-${transactionId}`,
      'ChargeStarted',
      { amount: 250, payment_reference: 'pm_card_visa', kind: 'card', prepaid: false },
      hoursAgo(hours),
    );
    return transactionId;
  };
  const ahead = await started(-26);
  house.process({ bus });
  await house.until(async () => asked.length >= 3);
  assert.equal(
    [new Set(asked), await house.types(`transaction-${ahead}`)],
    [new Set(['payments.lookup']), ['GiftsPurchased', 'ChargeStarted']],
  );
  await house.deps.records.put(`charge/${ahead}`, {
    outcome: 'charged',
    provider: 'simulated',
    charge_id: 'ch_before',
    simulated: true,
  } satisfies ChargeReply);
  await house.until(async () => (await house.all('PaymentCharged')).length === 1);
  assert.is(asked.includes('payments.charge'), false);
});

test('only looks a charge up after 20 hours: it is found, or parked', async ({ house }) => {
  await house.work();
  let asked = 0;
  const known: ChargeReply = { outcome: 'declined', provider: 'p', code: 'lost_card', simulated: false };
  const bus = answering(house.bus, { 'payments.charge': async () => ({ asked: ++asked }) });
  const old = async (): Promise<string> => {
    const { transactionId } = await house.buy([{}], { at: hoursAgo(22) });
    await house.append(
      `transaction-${transactionId}`,
      'ChargeStarted',
      { amount: 250, payment_reference: 'x' },
      hoursAgo(21),
    );
    return transactionId;
  };
  const found = await old();
  await house.deps.records.put(`charge/${found}`, known);
  const lost = await old();
  house.process({ bus });
  await house.until(
    async () => (await parked(house)).length === 1 && (await house.all('PaymentDeclined')).length === 1,
  );
  assert.is((await house.all('PaymentDeclined'))[0]?.stream, `transaction-${found}`);
  const [one] = await parked(house);
  assert.equal([one?.stream, one?.entity, one?.step], ['parked-purchase', lost, 'charge']);
  assert.match(one?.cause ?? '', 'does not know');
  assert.is(asked, 0);
});

test('parks an unknown payment method and a malformed answer', async ({ house }) => {
  const bus = answering(house.bus, { 'payments.charge': async () => ({ outcome: 'perhaps' }) });
  house.process({
    bus,
    retryPolicy: { ...house.deps.retryPolicy, attempts: 2 },
    paymentMethod: async (reference) =>
      reference === 'gone' ? undefined : { kind: 'card', prepaid: false, customer: 'cus_1' },
  });
  await house.buy([{}], { reference: 'gone' });
  await house.buy([{}]);
  await house.until(async () => (await parked(house)).length === 2);
  const causes = (await parked(house)).map(({ cause }) => cause).toSorted();
  assert.match(causes[0] ?? '', 'payment method is unknown');
  assert.match(causes[1] ?? '', /^MalformedMessageError: malformed answer on payments\.charge: message/);
  const told = house.lines.filter(
    ({ msg, err }) =>
      msg === 'not done at the first attempt' && (err as { type: string }).type === 'MalformedMessageError',
  );
  assert.is(told.length, 1, 'once, however often it is tried');
  assert.match(JSON.stringify(told), 'answer on payments.charge');
});

test('does everything, parking too, once a failing event store answers', async ({ house }) => {
  await house.work();
  let calls = 0;
  let parkings = 0;
  const events: EventStore = {
    ...house.events,
    append: async (...args) => {
      if (args[0].startsWith('parked-') && ++parkings < 3) throw new UnavailableError('full');
      calls++;
      if (calls % 3 === 1) throw new UnavailableError('full');
      if (calls % 3 === 2) {
        await house.events.append(...args).catch(() => undefined);
        throw new UnavailableError('silent', { outcomeUnknown: true });
      }
      return house.events.append(...args);
    },
  };
  const contact = house.deps.contact;
  house.process({
    events,
    retryPolicy: { ...house.deps.retryPolicy, attempts: 2 },
    contact: async (id) => {
      if (id === 'odd') throw new TypeError('odd');
      return contact(id);
    },
  });
  await house.buy([phone(1), { user_id: 'odd' }]);
  await house.until(
    async () => (await house.all('NotificationSent')).length === 1 && (await parked(house)).length === 1,
  );
  assert.is(sentIn(house), 1);
});

test('gives up after too many lost races', async ({ house }) => {
  await house.work();
  const events: EventStore = {
    ...house.events,
    append: async (stream, appended, expected) => {
      if (!stream.startsWith('transaction-')) return house.events.append(stream, appended, expected);
      throw new ConflictError(stream, expected, 7);
    },
  };
  house.process({ events, retryPolicy: { ...house.deps.retryPolicy, attempts: 2 } });
  await house.buy([{}]);
  await house.until(async () => (await parked(house)).length === 1);
  assert.match((await parked(house))[0]?.cause ?? '', 'ConflictError');
});

test('looks a name up again after a failure', async ({ house }) => {
  await house.work();
  let tries = 0;
  const names: string[] = [];
  const bus = answering(house.bus, {
    'notifications.send': async ({ sender_name }: { sender_name: string }) => {
      names.push(sender_name);
      return { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
    },
  });
  house.process({
    bus,
    contact: async () => {
      if (++tries === 1) throw new UnavailableError('down');
      return { name: 'Ann', phone_number: null, device_tokens: [], locale: null };
    },
  });
  await house.buy([phone(1)]);
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  assert.equal(names, ['Ann']);
});

test.run();
