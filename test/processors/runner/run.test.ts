import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { processManagers } from '../../../src/processors/managers.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { workThrough } from '../../../src/processors/runner/session.js';
import { processTally } from '../../../src/processors/runner/status.js';
import { phone, sentIn } from '../../support/service/installation.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('process managers on the embedded engines');

test('charges, issues and notifies each receiver where they can be reached', async ({ installation }) => {
  installation.contacts.set('with-device', {
    name: 'Bea',
    phone_number: '+447700900001',
    device_tokens: ['token-bea'],
    locale: 'cy',
  });
  installation.contacts.set('with-number', {
    name: 'Cid',
    phone_number: '+447700900002',
    device_tokens: [],
    locale: null,
  });
  installation.contacts.set('nowhere', { name: 'Dot', phone_number: null, device_tokens: [], locale: null });
  await installation.work();
  installation.process();
  const { transactionId, giftIds } = await installation.buy([
    phone(1),
    { user_id: 'with-device' },
    { user_id: 'with-number' },
    { user_id: 'nowhere' },
    {},
  ]);
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 4);

  assert.equal(await installation.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
  for (const giftId of giftIds) assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued']);
  const told = await Promise.all(giftIds.map((giftId) => installation.types(`notification-${giftId}`)));
  const sent = ['NotificationStarted', 'NotificationSent'];
  assert.equal(told, [sent, sent, sent, ['NotificationFailed'], []]);
  const channels = (await installation.all('NotificationSent'))
    .map(({ data }) => (data as { channel: string }).channel)
    .toSorted();
  assert.equal(channels, ['push', 'sms', 'sms']);
  const issued = (await installation.all('GiftIssued')).find(({ stream }) => stream === `gift-${giftIds[3]}`);
  assert.equal((await installation.all('NotificationFailed'))[0]?.data, {
    cause: 'no address',
    attempt: 1,
    asked_by: issued?.id,
  });
});

test('records causes, and what was simulated', async ({ installation }) => {
  await installation.work();
  installation.process();
  await installation.buy([phone(1)]);
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  const events = await installation.all(
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
    'GiftIssued',
    'NotificationStarted',
    'NotificationSent',
  );
  assert.is(events.length, 6);
  for (const [at, event] of events.entries()) {
    assert.is(event.metadata.correlationId, 'the-request');
    if (at === 0) continue;
    assert.is(event.metadata.causationId, events[at - 1]?.id, event.type);
    assert.equal(event.metadata.by, { user: 'system:process-managers' });
    assert.is(
      event.metadata.simulated,
      event.type === 'PaymentCharged' || event.type === 'NotificationSent' ? true : undefined,
      event.type,
    );
  }
  assert.not.match(JSON.stringify(installation.lines), /77009/);
});

test('issues and notifies nothing of a declined purchase', async ({ installation }) => {
  await installation.work();
  installation.process();
  const { transactionId, giftIds } = await installation.buy([phone(1)], {
    reference: 'pm_card_chargeDeclinedLostCard',
  });
  await installation.until(async () => (await installation.all('PaymentDeclined')).length === 1);
  const [declined] = await installation.all('PaymentDeclined');
  assert.equal(declined?.data, { provider: 'simulated', code: 'lost_card' });
  assert.is(declined?.stream, `transaction-${transactionId}`);
  assert.equal(await installation.types(`gift-${giftIds[0]}`), []);
});

test('charges one purchase after the other as they come', async ({ installation }) => {
  await installation.work();
  installation.process();
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
  for (let n = 2; n < 12; n++) {
    const { transactionId } = await installation.buy([{}]);
    for await (const batch of installation.events.follow(undefined, { streams: [`transaction-${transactionId}`] }))
      if (batch.events.some(({ type }) => type === 'PaymentCharged')) break;
  }
  assert.is((await installation.all('PaymentCharged')).length, 11);
});

test('goes on where it stopped: nothing is done twice, with and without checkpoint', async ({ installation }) => {
  await installation.work();
  const first = installation.process();
  await Promise.all(Array.from({ length: 5 }, () => installation.buy([phone(1), phone(2)])));
  await installation.until(async () => (await installation.all('NotificationSent')).length === 10);
  // There is a checkpoint once it has seen itself that some of that is done.
  await installation.until(async () => first.status().open === 0);
  await first.close();
  const length = await installation.events.end();
  assert.ok(await installation.deps.records.get('checkpoint/process-managers'));

  const second = installation.process();
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 1,
  );
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 11);
  await second.close();

  for (const { key } of await installation.deps.records.list('')) await installation.deps.records.delete(key);
  const before = await installation.events.end();
  assert.not.equal(before, length);
  installation.process();
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await sleep(100);
  assert.equal(await installation.events.end(), before);
  assert.is(installation.lines.filter(({ msg }) => msg === 'simulated notification sent').length, 10);
});

test('restarts from the first event without reading the streams of settled purchases', async ({ installation }) => {
  await installation.work();
  const first = installation.process();
  await Promise.all(Array.from({ length: 20 }, () => installation.buy([phone(1), {}])));
  await installation.until(async () => (await installation.all('NotificationSent')).length === 20);
  await first.close();
  for (const { key } of await installation.deps.records.list('')) await installation.deps.records.delete(key);
  const { transactionId, giftIds } = await installation.buy([{}]);

  const streams: string[] = [];
  const events: EventStore = {
    ...installation.events,
    async read(stream, options) {
      streams.push(stream);
      return installation.events.read(stream, options);
    },
  };
  installation.process({ events });
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await installation.until(async () => (await installation.all('GiftIssued')).length === 41);
  await sleep(100);
  const open = [`transaction-${transactionId}`, `gift-${giftIds[0]}`];
  assert.equal(
    streams.filter((stream) => !open.includes(stream)),
    [],
  );
  assert.ok(streams.includes(`transaction-${transactionId}`), 'what it acts on it does read');
});

test('a checkpoint of another log is not used', async ({ installation }) => {
  await installation.work();
  await installation.deps.records.put('checkpoint/process-managers', { logId: 'another', position: '9'.repeat(16) });
  await installation.buy([{}]);
  installation.process();
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
});

test('of two at once one works, the other takes over', async ({ installation }) => {
  await installation.work();
  const one = installation.process();
  installation.process();
  const buying = (async () => {
    for (let n = 0; n < 40; n++) {
      await installation.buy([phone(n), {}]);
      if (n === 20) void one.close();
    }
  })();
  await buying;
  await installation.until(async () => (await installation.all('NotificationSent')).length === 40);
  assert.is((await installation.all('PaymentCharged')).length, 40);
  assert.is((await installation.all('ChargeStarted')).length, 40);
  assert.is((await installation.all('GiftIssued')).length, 80);
  assert.is(installation.lines.filter(({ msg }) => msg === 'simulated notification sent').length, 40);
});

test('stands by after losing the lease, and works once the other has gone', async ({ installation }) => {
  const { records } = installation.deps;
  let away = false;
  const reached = <T>(call: () => Promise<T>): Promise<T> =>
    away ? Promise.reject(new UnavailableError('away')) : call();
  await installation.work();
  const first = installation.process({
    leaseMs: 150,
    records: {
      ...records,
      get: (key) => reached(() => records.get(key)),
      put: (key, value, options) => reached(() => records.put(key, value, options)),
    },
  });
  await installation.until(async () => first.status().leading);
  away = true;
  const second = installation.process({ leaseMs: 150 });
  await installation.until(async () => second.status().leading && !first.status().leading);
  away = false;
  await second.close();
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
});

test('acts only while the lease is held', async ({ installation }) => {
  await installation.work();
  let held = false;
  const ending = new AbortController();
  const tally = processTally();
  const session = {
    ...installation.deps,
    processes: processManagers(installation.deps),
    now: Date.now,
    retryPolicy: { ...RETRY_POLICY, ...installation.deps.retryPolicy },
    tally,
    health: { well: () => undefined, onTrouble: () => undefined },
  };
  const working = workThrough(session, {
    from: undefined,
    checkpoint: async () => undefined,
    signal: ending.signal,
    held: () => held,
  });
  const { transactionId } = await installation.buy([phone(1)]);
  await installation.until(async () => tally.status().steps.get('charge')?.inFlight === 1);
  await sleep(100);
  assert.equal(await installation.types(`transaction-${transactionId}`), ['GiftsPurchased']);
  held = true;
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  ending.abort();
  await working;
});

test('waits for workers that come later, and for failing providers', async ({ installation }) => {
  installation.process();
  const { transactionId } = await installation.buy([phone(1)], { reference: 'pm_card_flaky' });
  await installation.until(async () => (await installation.types(`transaction-${transactionId}`)).length === 2);
  await sleep(50);
  await installation.work();
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  assert.is((await installation.all('WorkParked')).length, 0);
});

test('counts gifts that commands issued before as issued', async ({ installation }) => {
  await installation.work();
  const { transactionId, giftIds } = await installation.buy([phone(1), phone(2)]);
  await installation.append(`transaction-${transactionId}`, 'ChargeStarted', {
    amount: 500,
    payment_reference: 'pm_card_visa',
    kind: 'card',
    prepaid: false,
  });
  await installation.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'simulated',
    charge_id: 'c',
  });
  const receiver = { phone_id: 'hash1' };
  await installation.append(`gift-${giftIds[0]}`, 'GiftIssued', { transaction_id: transactionId, index: 0, receiver });
  await installation.append(`gift-${giftIds[0]}`, 'GiftRedeemed', {});
  installation.process();
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(await installation.types(`gift-${giftIds[0]}`), ['GiftIssued', 'GiftRedeemed']);
  assert.equal(
    await installation.types(`notification-${giftIds[0]}`),
    ['NotificationFailed'],
    'it was redeemed before',
  );
  assert.is(sentIn(installation), 1);
});

test('starts a broken feed anew', async ({ installation }) => {
  await installation.work();
  let broken = 0;
  const events: EventStore = {
    ...installation.events,
    follow: (...args) => {
      if (broken++ < 1) throw new Error('the feed broke');
      return installation.events.follow(...args);
    },
  };
  installation.process({ events });
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);
  assert.is(broken, 2);
});

test.run();
