import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { processManagers } from '../../../src/processors/managers.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { workThrough } from '../../../src/processors/runner/session.js';
import { processTally } from '../../../src/processors/runner/status.js';
import { phone, sentIn } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('process managers on the embedded engines');

test('charges, issues and notifies each receiver where they can be reached', async ({ house }) => {
  house.contacts.set('with-device', {
    name: 'Bea',
    phone_number: '+447700900001',
    device_tokens: ['token-bea'],
    locale: 'cy',
  });
  house.contacts.set('with-number', { name: 'Cid', phone_number: '+447700900002', device_tokens: [], locale: null });
  house.contacts.set('nowhere', { name: 'Dot', phone_number: null, device_tokens: [], locale: null });
  await house.work();
  house.process();
  const { transactionId, giftIds } = await house.buy([
    phone(1),
    { user_id: 'with-device' },
    { user_id: 'with-number' },
    { user_id: 'nowhere' },
    {},
  ]);
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 4);

  assert.equal(await house.types(`transaction-${transactionId}`), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
  for (const giftId of giftIds) assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued']);
  const told = await Promise.all(giftIds.map((giftId) => house.types(`notification-${giftId}`)));
  const sent = ['NotificationStarted', 'NotificationSent'];
  assert.equal(told, [sent, sent, sent, ['NotificationFailed'], []]);
  const channels = (await house.all('NotificationSent'))
    .map(({ data }) => (data as { channel: string }).channel)
    .toSorted();
  assert.equal(channels, ['push', 'sms', 'sms']);
  const issued = (await house.all('GiftIssued')).find(({ stream }) => stream === `gift-${giftIds[3]}`);
  assert.equal((await house.all('NotificationFailed'))[0]?.data, {
    cause: 'no address',
    attempt: 1,
    asked_by: issued?.id,
  });
});

test('records causes, and what was simulated', async ({ house }) => {
  await house.work();
  house.process();
  await house.buy([phone(1)]);
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  const events = await house.all(
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
  assert.not.match(JSON.stringify(house.lines), /77009/);
});

test('issues and notifies nothing of a declined purchase', async ({ house }) => {
  await house.work();
  house.process();
  const { transactionId, giftIds } = await house.buy([phone(1)], { reference: 'pm_card_chargeDeclinedLostCard' });
  await house.until(async () => (await house.all('PaymentDeclined')).length === 1);
  const [declined] = await house.all('PaymentDeclined');
  assert.equal(declined?.data, { provider: 'simulated', code: 'lost_card' });
  assert.is(declined?.stream, `transaction-${transactionId}`);
  assert.equal(await house.types(`gift-${giftIds[0]}`), []);
});

test('charges one purchase after the other as they come', async ({ house }) => {
  await house.work();
  house.process();
  await house.buy([{}]);
  await house.until(async () => (await house.all('PaymentCharged')).length === 1);
  for (let n = 2; n < 12; n++) {
    const { transactionId } = await house.buy([{}]);
    for await (const batch of house.events.follow(undefined, { streams: [`transaction-${transactionId}`] }))
      if (batch.events.some(({ type }) => type === 'PaymentCharged')) break;
  }
  assert.is((await house.all('PaymentCharged')).length, 11);
});

test('goes on where it stopped: nothing is done twice, with and without checkpoint', async ({ house }) => {
  await house.work();
  const first = house.process();
  await Promise.all(Array.from({ length: 5 }, () => house.buy([phone(1), phone(2)])));
  await house.until(async () => (await house.all('NotificationSent')).length === 10);
  // There is a checkpoint once it has seen itself that some of that is done.
  await house.until(async () => first.status().open === 0);
  await first.close();
  const length = await house.events.end();
  assert.ok(await house.deps.records.get('checkpoint/process-managers'));

  const second = house.process();
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 1,
  );
  await house.buy([{}]);
  await house.until(async () => (await house.all('GiftIssued')).length === 11);
  await second.close();

  for (const { key } of await house.deps.records.list('')) await house.deps.records.delete(key);
  const before = await house.events.end();
  assert.not.equal(before, length);
  house.process();
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await sleep(100);
  assert.equal(await house.events.end(), before);
  assert.is(house.lines.filter(({ msg }) => msg === 'simulated notification sent').length, 10);
});

test('restarts from the first event without reading the streams of settled purchases', async ({ house }) => {
  await house.work();
  const first = house.process();
  await Promise.all(Array.from({ length: 20 }, () => house.buy([phone(1), {}])));
  await house.until(async () => (await house.all('NotificationSent')).length === 20);
  await first.close();
  for (const { key } of await house.deps.records.list('')) await house.deps.records.delete(key);
  const { transactionId, giftIds } = await house.buy([{}]);

  const streams: string[] = [];
  const events: EventStore = {
    ...house.events,
    async read(stream, options) {
      streams.push(stream);
      return house.events.read(stream, options);
    },
  };
  house.process({ events });
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await house.until(async () => (await house.all('GiftIssued')).length === 41);
  await sleep(100);
  const open = [`transaction-${transactionId}`, `gift-${giftIds[0]}`];
  assert.equal(
    streams.filter((stream) => !open.includes(stream)),
    [],
  );
  assert.ok(streams.includes(`transaction-${transactionId}`), 'what it acts on it does read');
});

test('a checkpoint of another log is not used', async ({ house }) => {
  await house.work();
  await house.deps.records.put('checkpoint/process-managers', { logId: 'another', position: '9'.repeat(16) });
  await house.buy([{}]);
  house.process();
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
});

test('of two at once one works, the other takes over', async ({ house }) => {
  await house.work();
  const one = house.process();
  house.process();
  const buying = (async () => {
    for (let n = 0; n < 40; n++) {
      await house.buy([phone(n), {}]);
      if (n === 20) void one.close();
    }
  })();
  await buying;
  await house.until(async () => (await house.all('NotificationSent')).length === 40);
  assert.is((await house.all('PaymentCharged')).length, 40);
  assert.is((await house.all('ChargeStarted')).length, 40);
  assert.is((await house.all('GiftIssued')).length, 80);
  assert.is(house.lines.filter(({ msg }) => msg === 'simulated notification sent').length, 40);
});

test('stands by after losing the lease, and works once the other has gone', async ({ house }) => {
  const { records } = house.deps;
  let away = false;
  const reached = <T>(call: () => Promise<T>): Promise<T> =>
    away ? Promise.reject(new UnavailableError('away')) : call();
  await house.work();
  const first = house.process({
    leaseMs: 150,
    records: {
      ...records,
      get: (key) => reached(() => records.get(key)),
      put: (key, value, options) => reached(() => records.put(key, value, options)),
    },
  });
  await house.until(async () => first.status().leading);
  away = true;
  const second = house.process({ leaseMs: 150 });
  await house.until(async () => second.status().leading && !first.status().leading);
  away = false;
  await second.close();
  await house.buy([{}]);
  await house.until(async () => (await house.all('PaymentCharged')).length === 1);
});

test('acts only while the lease is held', async ({ house }) => {
  await house.work();
  let held = false;
  const ending = new AbortController();
  const tally = processTally();
  const session = {
    ...house.deps,
    processes: processManagers(house.deps),
    now: Date.now,
    retryPolicy: { ...RETRY_POLICY, ...house.deps.retryPolicy },
    tally,
    health: { well: () => undefined, onTrouble: () => undefined },
  };
  const working = workThrough(session, {
    from: undefined,
    checkpoint: async () => undefined,
    signal: ending.signal,
    held: () => held,
  });
  const { transactionId } = await house.buy([phone(1)]);
  await house.until(async () => tally.status().steps.get('charge')?.inFlight === 1);
  await sleep(100);
  assert.equal(await house.types(`transaction-${transactionId}`), ['GiftsPurchased']);
  held = true;
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  ending.abort();
  await working;
});

test('waits for workers that come later, and for failing providers', async ({ house }) => {
  house.process();
  const { transactionId } = await house.buy([phone(1)], { reference: 'pm_card_flaky' });
  await house.until(async () => (await house.types(`transaction-${transactionId}`)).length === 2);
  await sleep(50);
  await house.work();
  await house.until(async () => (await house.all('NotificationSent')).length === 1);
  assert.is((await house.all('WorkParked')).length, 0);
});

test('counts gifts that commands issued before as issued', async ({ house }) => {
  await house.work();
  const { transactionId, giftIds } = await house.buy([phone(1), phone(2)]);
  await house.append(`transaction-${transactionId}`, 'ChargeStarted', {
    amount: 500,
    payment_reference: 'pm_card_visa',
    kind: 'card',
    prepaid: false,
  });
  await house.append(`transaction-${transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider: 'simulated',
    charge_id: 'c',
  });
  const receiver = { phone_id: 'hash1' };
  await house.append(`gift-${giftIds[0]}`, 'GiftIssued', { transaction_id: transactionId, index: 0, receiver });
  await house.append(`gift-${giftIds[0]}`, 'GiftRedeemed', {});
  house.process();
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(await house.types(`gift-${giftIds[0]}`), ['GiftIssued', 'GiftRedeemed']);
  assert.equal(await house.types(`notification-${giftIds[0]}`), ['NotificationFailed'], 'it was redeemed before');
  assert.is(sentIn(house), 1);
});

test('starts a broken feed anew', async ({ house }) => {
  await house.work();
  let broken = 0;
  const events: EventStore = {
    ...house.events,
    follow: (...args) => {
      if (broken++ < 1) throw new Error('the feed broke');
      return house.events.follow(...args);
    },
  };
  house.process({ events });
  await house.buy([{}]);
  await house.until(async () => (await house.all('GiftIssued')).length === 1);
  assert.is(broken, 2);
});

test.run();
