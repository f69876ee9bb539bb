import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Bus, RemoteError } from '../../src/ports/bus.js';
import { ConflictError, type EventStore } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { ChargeReply } from '../../src/messages/payments.js';
import { faultyBus } from '../support/faults/faultyBus.js';
import { type TestInstallation, phone, sentIn } from '../support/service/installation.js';
import { hoursAgo } from '../support/service/testLog.js';
import { installationSuite } from '../support/service/installationSuite.js';

const test = installationSuite('process managers during failures');

const parked = async (
  installation: TestInstallation,
): Promise<{ stream: string; entity: string; step: string; cause: string }[]> =>
  (await installation.all('WorkParked')).map(({ stream, data }) => ({
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

test('does everything once over a bus that loses, repeats, reorders and delays', async ({ installation }) => {
  await installation.work();
  installation.process({ bus: faultyBus(installation.bus, 42) });
  const bought = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      installation.buy([phone(n), phone(n + 100), {}], n % 4 === 0 ? { reference: 'pm_card_chargeDeclined' } : {}),
    ),
  );
  await installation.until(async () => (await installation.all('NotificationSent')).length === 18);
  await sleep(100);
  assert.is(sentIn(installation), 18);
  for (const [n, { transactionId }] of bought.entries()) {
    assert.equal(await installation.types(`transaction-${transactionId}`), [
      'GiftsPurchased',
      'ChargeStarted',
      n % 4 === 0 ? 'PaymentDeclined' : 'PaymentCharged',
    ]);
  }
  assert.equal(await parked(installation), []);
});

test('parks work that fails for good with its cause, and stops no other work', async ({ installation }) => {
  await installation.work();
  const bus = answering(installation.bus, {
    'notifications.send': async (request: { to: string[]; gift_id: string }) => {
      if (request.to[0] === '+447700900001') throw new RemoteError('always in trouble');
      return { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
    },
  });
  const first = installation.process({ bus, retryPolicy: { ...installation.deps.retryPolicy, giveUpMs: 50 } });
  const { transactionId, giftIds } = await installation.buy([phone(1), phone(2)]);
  await installation.buy([phone(3)]);
  await installation.until(
    async () => (await installation.all('NotificationSent')).length === 2 && (await parked(installation)).length === 1,
  );
  const [one] = await parked(installation);
  assert.equal(one, {
    ...one,
    stream: 'parked-notification',
    entity: giftIds[0],
    transaction_id: transactionId,
    step: 'notify',
    cause: 'RemoteError: always in trouble',
  });
  await first.close();
  for (const { key } of await installation.deps.records.list('checkpoint')) await installation.deps.records.delete(key);
  const end = await installation.events.end();
  installation.process();
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await sleep(50);
  assert.equal(await installation.events.end(), end);
});

test('parks a notification with an unknown outcome, and never sends it again', async ({ installation }) => {
  const { transactionId, giftIds } = await installation.buy([phone(1)]);
  await installation.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 250,
    provider: 'p',
    charge_id: 'c',
  });
  await installation.append(`gift-${giftIds[0]}`, 'GiftIssued', {
    transaction_id: transactionId,
    index: 0,
    receiver: { phone_id: 'hash1' },
  });
  await installation.append(`notification-${giftIds[0]}`, 'NotificationStarted', {
    transaction_id: transactionId,
    channel: 'sms',
    attempt: 1,
    asked_by: (await installation.all('GiftIssued'))[0]?.id,
  });
  // The workers' ledger begins only now: it can't tell what was sent before.
  await sleep(2);
  await installation.work();
  installation.process({ retryPolicy: { ...installation.deps.retryPolicy, attempts: 3 } });
  await installation.until(async () => (await parked(installation)).length === 1);
  assert.match((await parked(installation))[0]?.cause ?? '', 'nobody knows');
  assert.is(sentIn(installation), 0);
});

test('records the outcome that the provider is found to have', async ({ installation }) => {
  await installation.work();
  const answers = [
    { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false },
    { outcome: 'failed', cause: 'blocked', simulated: false },
  ];
  const bus = answering(installation.bus, {
    'notifications.send': async () => {
      throw new UnavailableError('lost', { outcomeUnknown: true });
    },
    'notifications.lookup': async () => answers.shift() ?? { outcome: 'unknown' },
  });
  installation.process({ bus });
  await installation.buy([phone(1), phone(2)]);
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(
    (await installation.all('NotificationFailed')).map(({ data }) => (data as { cause?: string }).cause),
    ['blocked'],
  );
});

test('fails a receiver who has lost every address since', async ({ installation }) => {
  installation.contacts.set('bea', { name: 'Bea', phone_number: '+447700900001', device_tokens: [], locale: null });
  await installation.work();
  const bus = answering(installation.bus, {
    'notifications.send': async () => {
      installation.contacts.delete('bea');
      throw new UnavailableError('lost', { outcomeUnknown: true });
    },
  });
  installation.process({ bus });
  await installation.buy([{ user_id: 'bea' }]);
  await installation.until(async () => (await installation.all('NotificationFailed')).length === 1);
  assert.equal((await installation.all('NotificationFailed'))[0]?.data, {
    cause: 'no address',
    attempt: 1,
    asked_by: (await installation.all('GiftIssued'))[0]?.id,
  });
});

test('looks an old purchase up before it is charged, as in a restored log', async ({ installation }) => {
  await installation.work();
  const requested: string[] = [];
  const bus = {
    ...installation.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      requested.push(subject),
      installation.bus.request<R>(subject, payload, options)
    ),
  };
  const before = await installation.buy([{}], { at: hoursAgo(21) });
  await installation.deps.records.put(`charge/${before.transactionId}`, {
    outcome: 'charged',
    provider: 'simulated',
    charge_id: 'ch_before',
    simulated: true,
  } satisfies ChargeReply);
  const processors = installation.process({ bus });
  const chargeOf = async (): Promise<unknown> => (await installation.all('PaymentCharged')).at(-1)?.data;
  await installation.until(async () => (await chargeOf()) !== undefined);
  assert.equal(
    [await chargeOf(), requested.splice(0)],
    [{ amount: 250, provider: 'simulated', charge_id: 'ch_before' }, ['payments.lookup']],
  );
  await processors.close();
  const never = await installation.buy([{}], { at: hoursAgo(21) });
  installation.process({ bus });
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 2);
  assert.equal(
    [await chargeOf(), requested],
    [
      { amount: 250, provider: 'simulated', charge_id: `ch_simulated_${never.transactionId}` },
      ['payments.lookup', 'payments.charge'],
    ],
  );
});

test('parks a charge of another amount than the purchase costs', async ({ installation }) => {
  const charged = (amount: number): ChargeReply => ({
    outcome: 'charged',
    provider: 'p',
    charge_id: 'ch_1',
    amount,
    simulated: false,
  });
  let amount = 200;
  installation.process({
    bus: answering(installation.bus, {
      'payments.charge': async () => charged(amount),
      'payments.lookup': async () => charged(amount),
    }),
  });
  const { transactionId } = await installation.buy([{}]);
  await installation.until(async () => (await parked(installation)).length === 1);
  assert.match(
    (await parked(installation))[0]?.cause ?? '',
    /^p took 200 pence for this transaction \(ch_1\), which costs 250 pence/,
  );
  assert.equal(await installation.types(`transaction-${transactionId}`), ['GiftsPurchased', 'ChargeStarted']);
  amount = 250;
  await installation.append('parked-purchase', 'WorkRetried', {
    entity: transactionId,
    transaction_id: transactionId,
    step: 'charge',
    times: 1,
    reason: 'x',
  });
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
});

test('looks a charge of the future up after the clock was set back', async ({ installation }) => {
  await installation.work();
  const requested: string[] = [];
  const bus = {
    ...installation.bus,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) => (
      requested.push(subject),
      installation.bus.request<R>(subject, payload, options)
    ),
  };
  const started = async (hours: number): Promise<string> => {
    const { transactionId } = await installation.buy([{}]);
    await installation.append(
      `transaction-${transactionId}`,
      'ChargeStarted',
      { amount: 250, payment_reference: 'pm_card_visa', kind: 'card', prepaid: false },
      hoursAgo(hours),
    );
    return transactionId;
  };
  const ahead = await started(-26);
  installation.process({ bus });
  await installation.until(async () => requested.length >= 3);
  assert.equal(
    [new Set(requested), await installation.types(`transaction-${ahead}`)],
    [new Set(['payments.lookup']), ['GiftsPurchased', 'ChargeStarted']],
  );
  await installation.deps.records.put(`charge/${ahead}`, {
    outcome: 'charged',
    provider: 'simulated',
    charge_id: 'ch_before',
    simulated: true,
  } satisfies ChargeReply);
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
  assert.is(requested.includes('payments.charge'), false);
});

test('only looks a charge up after 20 hours: it is found, or parked', async ({ installation }) => {
  await installation.work();
  let requested = 0;
  const known: ChargeReply = { outcome: 'declined', provider: 'p', code: 'lost_card', simulated: false };
  const bus = answering(installation.bus, { 'payments.charge': async () => ({ requested: ++requested }) });
  const old = async (): Promise<string> => {
    const { transactionId } = await installation.buy([{}], { at: hoursAgo(22) });
    await installation.append(
      `transaction-${transactionId}`,
      'ChargeStarted',
      { amount: 250, payment_reference: 'x' },
      hoursAgo(21),
    );
    return transactionId;
  };
  const found = await old();
  await installation.deps.records.put(`charge/${found}`, known);
  const lost = await old();
  installation.process({ bus });
  await installation.until(
    async () => (await parked(installation)).length === 1 && (await installation.all('PaymentDeclined')).length === 1,
  );
  assert.is((await installation.all('PaymentDeclined'))[0]?.stream, `transaction-${found}`);
  const [one] = await parked(installation);
  assert.equal([one?.stream, one?.entity, one?.step], ['parked-purchase', lost, 'charge']);
  assert.match(one?.cause ?? '', 'does not know');
  assert.is(requested, 0);
});

test('parks an unknown payment method, and waits for an answer that it can read', async ({ installation }) => {
  await installation.work();
  let malformed = 0;
  const bus = answering(installation.bus, {
    'payments.charge': async (request: object) => {
      if (malformed >= 5) return installation.bus.request('payments.charge', request, { timeoutMs: 5_000 });
      malformed++;
      return { outcome: 'perhaps' };
    },
  });
  installation.process({
    bus,
    retryPolicy: { ...installation.deps.retryPolicy, attempts: 2 },
    paymentMethod: async (reference) =>
      reference === 'gone' ? undefined : { kind: 'card', prepaid: false, customer: 'cus_1' },
  });
  await installation.buy([{}], { reference: 'gone' });
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
  await installation.until(async () => (await parked(installation)).length === 1);
  assert.match((await parked(installation))[0]?.cause ?? '', 'payment method is unknown');
  const told = installation.lines.filter(
    ({ msg, err }) =>
      msg === 'not done at the first attempt' && (err as { type: string }).type === 'MalformedMessageError',
  );
  // On a slow machine the process may lose its lease, and begin anew.
  const sessions = 1 + installation.lines.filter(({ msg }) => msg === 'lease lost').length;
  assert.ok(told.length >= 1 && told.length <= sessions, `once a session, however often it is tried: ${told.length}`);
  assert.match(JSON.stringify(told), 'answer on payments.charge');
});

test('does everything, parking too, once a failing event store answers', async ({ installation }) => {
  await installation.work();
  let calls = 0;
  let parkings = 0;
  const events: EventStore = {
    ...installation.events,
    append: async (...args) => {
      if (args[0].startsWith('parked-') && ++parkings < 3) throw new UnavailableError('full');
      calls++;
      if (calls % 3 === 1) throw new UnavailableError('full');
      if (calls % 3 === 2) {
        await installation.events.append(...args).catch(() => undefined);
        throw new UnavailableError('silent', { outcomeUnknown: true });
      }
      return installation.events.append(...args);
    },
  };
  const contact = installation.deps.contact;
  installation.process({
    events,
    retryPolicy: { ...installation.deps.retryPolicy, attempts: 2 },
    contact: async (id) => {
      if (id === 'odd') throw new TypeError('odd');
      return contact(id);
    },
  });
  await installation.buy([phone(1), { user_id: 'odd' }]);
  await installation.until(
    async () => (await installation.all('NotificationSent')).length === 1 && (await parked(installation)).length === 1,
  );
  assert.is(sentIn(installation), 1);
});

test('gives up after too many lost races', async ({ installation }) => {
  await installation.work();
  const events: EventStore = {
    ...installation.events,
    append: async (stream, appended, expected) => {
      if (!stream.startsWith('transaction-')) return installation.events.append(stream, appended, expected);
      throw new ConflictError(stream, expected, 7);
    },
  };
  installation.process({ events, retryPolicy: { ...installation.deps.retryPolicy, attempts: 2 } });
  await installation.buy([{}]);
  await installation.until(async () => (await parked(installation)).length === 1);
  assert.match((await parked(installation))[0]?.cause ?? '', 'ConflictError');
});

test('looks a name up again after a failure', async ({ installation }) => {
  await installation.work();
  let tries = 0;
  const names: string[] = [];
  const bus = answering(installation.bus, {
    'notifications.send': async ({ sender_name }: { sender_name: string }) => {
      names.push(sender_name);
      return { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
    },
  });
  installation.process({
    bus,
    contact: async () => {
      if (++tries === 1) throw new UnavailableError('down');
      return { name: 'Ann', phone_number: null, device_tokens: [], locale: null };
    },
  });
  await installation.buy([phone(1)]);
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  assert.equal(names, ['Ann']);
});

test.run();
