import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PurchaseReceiver } from '../../src/domain/purchase/events.js';
import type { Processors } from '../../src/processors/runner/run.js';
import { type TestInstallation, openInstallation, phone } from '../support/service/installation.js';
import type { Bought } from '../support/service/testLog.js';
import { crashable } from '../support/faults/crashable.js';

const test = suite('a purchase of 10,000 receivers');
const RECEIVERS = 10_000;
let installation: TestInstallation;
/** Messages handed over. */
let sent = 0;
let first: Processors;
let last: Processors;
let second: Bought;
test.before(async () => {
  installation = await openInstallation();
  // Kept, the log's lines would be most of what is in memory.
  installation.lines.push = (...lines) =>
    (sent += lines.filter(({ msg }) => msg === 'simulated notification sent').length);
  await installation.work();
});
test.after(() => installation.close());

const receivers = (): PurchaseReceiver[] => Array.from({ length: RECEIVERS }, (_, n) => phone(n));

/** Waits until so many receivers have been told in all. */
async function untilTold(count: number): Promise<void> {
  let told = 0;
  for await (const batch of installation.events.follow(undefined, { types: ['NotificationSent'] })) {
    told += batch.events.length;
    if (told >= count) return;
  }
}

/** What is in use after everything that isn't has been given back, bytes. */
function inUse(): number {
  setFlagsFromString('--expose_gc');
  const gc = runInNewContext('gc') as () => void;
  // What only weak references lead to goes with the next collection.
  for (let n = 0; n < 3; n++) gc();
  return process.memoryUsage().heapUsed;
}

test('issues and notifies all', async () => {
  first = installation.process();
  await installation.buy([{}]);
  await installation.until(async () => (await installation.all('GiftIssued')).length === 1);

  await installation.buy(receivers());
  await untilTold(RECEIVERS);
  assert.is((await installation.all('GiftIssued')).length, 1 + RECEIVERS);
  assert.is(sent, RECEIVERS);
});

test('goes on after two kills, and keeps nothing in memory', async () => {
  const bought = inUse();
  const doomed = [crashable(installation.deps, 5_000, 'before'), crashable(installation.deps, 20_000, 'after')];
  await first.close();
  const processes = doomed.map(({ deps }) => installation.process({ ...deps, leaseMs: 500 }));
  second = await installation.buy(receivers());
  await installation.until(async () => doomed.every(({ dead }) => dead));
  last = installation.process({ leaseMs: 2_000 });
  await untilTold(2 * RECEIVERS);
  await Promise.all(processes.map((one) => one.close()));

  assert.is((await installation.all('PaymentCharged')).length, 3);
  assert.is((await installation.all('GiftIssued')).length, 1 + 2 * RECEIVERS);
  const told = await installation.all('NotificationSent');
  assert.is(new Set(told.map(({ stream }) => stream)).size, 2 * RECEIVERS);
  assert.is(told.length, 2 * RECEIVERS);
  assert.is(sent, 2 * RECEIVERS);
  assert.equal(await installation.all('WorkParked'), []);
  told.length = 0;
  const more = inUse() - bought;
  assert.ok(more < 8_000_000, `${Math.round(more / 1e5) / 10} MB more than after the one before`);
});

test('refunds all once though killed on the way', async () => {
  const { transactionId, giftIds } = second;
  await last.close();
  const doomed = crashable(installation.deps, 4_000, 'after');
  installation.process({ ...doomed.deps, leaseMs: 2_000 });
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'all',
    gift_ids: giftIds,
    voided: false,
    reason: 'event cancelled',
  });
  await installation.until(async () => doomed.dead);
  installation.process({ leaseMs: 2_000 });
  await installation.until(async () =>
    (await installation.types(`transaction-${transactionId}`)).includes('GiftsRefunded'),
  );
  assert.equal(
    (await installation.all('GiftsRefunded')).map(({ data }) => (data as { amount: number }).amount),
    [RECEIVERS * 250],
  );
  assert.is((await installation.all('GiftCancelled')).length, RECEIVERS);
});

test.run();
