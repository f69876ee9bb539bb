/**
 * A real history of thousands of purchases whose read store and checkpoints are lost: by the providers' own ledgers
 * nobody is charged, told or refunded again.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { READ_STORE_FILE } from '../../src/adapters/embedded/readStore/file.js';
import { inParallel } from '../../src/lib/async/inParallel.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { openRealProviders, type RealProviders } from '../support/providers/realProviders.js';
import { type Service, startService } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('starting again from nothing');

const PURCHASES = 2_000;
const BULK = 500;
const CLIENTS = 32;

let providers: RealProviders;
let dataDir: string;
test.before(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'from-nothing-'));
  providers = await openRealProviders();
});
test.after(async () => {
  await providers.close();
  rmSync(dataDir, { recursive: true });
});

function start(catalogue?: object): Promise<Service> {
  return startService({
    dataDir,
    engines: EMBEDDED,
    split: false,
    env: providers.settings,
    ...(catalogue === undefined ? {} : { catalogue }),
  });
}

/** How many events of a type stand in the log. */
async function countOf(service: Service, ...types: string[]): Promise<number> {
  let count = 0;
  for await (const batch of service.events.readAll(undefined, { types })) count += batch.events.length;
  return count;
}

const requested = (): number[] =>
  [providers.stripe, providers.twilio, providers.fcm].map((one) => one.requested.length);

/** Declined ones, gifts to be shared, pushes to one or two devices, and one bulk purchase by SMS; then some refunds. */
async function makeHistory(service: Service): Promise<void> {
  const token = await service.userToken('ann');
  const declined = (n: number): boolean => n % 20 === 0;
  const transactions: string[] = [];
  await inParallel(
    Array.from({ length: PURCHASES }, (_, n) => n),
    CLIENTS,
    async (n) => {
      const receivers =
        n === 1
          ? Array.from({ length: BULK }, (_, at) => ({ phone_number: `+4477009${String(at).padStart(5, '0')}` }))
          : n % 3 === 0
            ? [{}]
            : n % 3 === 1
              ? [{ user_id: 'ann' }]
              : [{ user_id: 'ann' }, {}];
      const body = purchaseOf('latte', receivers, {
        reference: declined(n) ? 'pm_card_visa_chargeDeclined' : 'pm_card_visa',
      });
      const reply = await service.ask('POST', '/api/v2/transactions', { token, body });
      assert.equal(reply.status, declined(n) ? 402 : 201, reply.text);
      if (!declined(n)) transactions.push(reply.json.data.id as string);
    },
  );
  const sue = await service.userToken('sue');
  for (const transaction of transactions.slice(0, 20)) {
    const reply = await service.ask('POST', `/ops/transactions/${transaction}/refund`, {
      token: sue,
      body: { reason: 'a test' },
    });
    assert.equal(reply.json.data.status, 'refunded', reply.text);
  }
  const toTell = await countOf(service, 'NotificationStarted');
  assert.ok(toTell > BULK + 1_000);
  await eventually(
    async () =>
      (await countOf(service, 'NotificationSent', 'NotificationFailed')) >=
      (await countOf(service, 'NotificationStarted')),
  );
}

test('repeats no charge, notification or refund', async () => {
  const first = await start(CATALOGUE);
  try {
    await makeHistory(first);
    // What follows by itself has followed.
    for (let before = -1; before !== requested().reduce((sum, one) => sum + one); await sleep(300))
      before = requested().reduce((sum, one) => sum + one);
  } finally {
    await first.close();
  }
  for (const file of readdirSync(dataDir)) if (file.startsWith(READ_STORE_FILE)) rmSync(join(dataDir, file));

  const { stripe, twilio } = providers;
  const before = {
    requested: requested(),
    intents: stripe.intents.length,
    refunds: stripe.refunds.length,
    messages: twilio.messages.length,
  };
  const again = await start();
  try {
    const end = await again.events.end();
    await eventually(async () => again.log.some((line) => line.includes('process managers have caught up')));
    await sleep(1_000);
    const events = await countOf(
      again,
      'GiftsPurchased',
      'ChargeStarted',
      'PaymentCharged',
      'PaymentDeclined',
      'GiftIssued',
      'NotificationStarted',
      'NotificationSent',
    );
    console.log(`${PURCHASES} purchases, ${events} events of theirs`);
    assert.equal(await again.events.end(), end, 'nothing was appended');
    assert.deepEqual(
      {
        requested: requested(),
        intents: stripe.intents.length,
        refunds: stripe.refunds.length,
        messages: twilio.messages.length,
      },
      before,
    );

    const charged = stripe.intents
      .filter(({ status }) => status === 'succeeded')
      .map(({ metadata }) => metadata['transaction_id']);
    assert.equal(new Set(charged).size, charged.length, 'each once');
    assert.equal(charged.length, await countOf(again, 'PaymentCharged'));
    assert.equal(await countOf(again, 'PaymentDeclined'), PURCHASES / 20);
    assert.equal(await countOf(again, 'WorkParked'), 0);
    assert.equal(stripe.refunds.length, 20);
    assert.equal(new Set(twilio.messages.map(({ body }) => body)).size, BULK);
    assert.equal(twilio.messages.length, BULK);

    // And the service does its work.
    const reply = await again.ask('POST', '/api/v2/transactions', {
      token: await again.userToken('ann'),
      body: purchaseOf('latte', [{ user_id: 'ann' }]),
    });
    assert.equal(reply.status, 201);
    assert.equal(stripe.charges(reply.json.data.id as string), 1);
  } finally {
    await again.close();
  }
});

test.run();
