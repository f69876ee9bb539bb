import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fold, type Happened } from '../../src/domain/decider.js';
import { walletAggregate, type WalletEvent } from '../../src/domain/wallet.js';
import { walletPayments } from '../../src/processors/walletPayments.js';
import { type Writer, writer } from '../../src/processors/writing.js';
import { type House, openHouse } from '../support/house.js';

const test = suite<{ house: House }>('wallets');
test.before.each(async (context) => {
  context.house = await openHouse();
  context.house.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
  context.house.methods.set('invoiced', { kind: 'wallet', prepaid: false, customer: null });
});
test.after.each((context) => context.house.close());

const topUp = (house: House, id: string, amount: number): Promise<void> => house.append('wallet-prepaid', 'WalletToppedUp', { top_up_id: id, amount });
const reason = { commandId: 'c', cause: { id: 'e', at: '', revision: 0, correlationId: 'r' } };
const balance = async (house: House): Promise<number> => fold(walletAggregate, (await house.events.read('wallet-prepaid')) as unknown as Happened<WalletEvent>[]).balance;

test('a prepaid wallet pays while there is enough, and declines then', async ({ house }) => {
  await topUp(house, 'a', 600);
  house.process();
  await Promise.all(Array.from({ length: 5 }, () => house.buy([{}], { reference: 'prepaid', price: 250 })));
  await house.until(async () => (await house.all('PaymentCharged', 'PaymentDeclined')).length === 5);
  const charged = await house.all('PaymentCharged');
  assert.is(charged.length, 2);
  assert.match(JSON.stringify(charged[0]?.data), '"provider":"wallet"');
  assert.is(charged[0]?.metadata.simulated, undefined);
  for (const { data } of await house.all('PaymentDeclined')) assert.equal(data, { provider: 'wallet', code: 'insufficient_funds' });
  assert.is(await balance(house), 100);
});

test('a wallet settled by invoice pays without a provider', async ({ house }) => {
  house.process();
  const { transactionId } = await house.buy([{}], { reference: 'invoiced' });
  await house.until(async () => (await house.all('PaymentCharged')).length === 1);
  assert.equal((await house.all('PaymentCharged'))[0]?.data, { amount: 250, provider: 'invoice', charge_id: `invoice-${transactionId}` });
});

test('a debit that was made is found again; one that was refused stays refused after a top-up', async ({ house }) => {
  const pay = (transaction: string): Promise<string> => walletPayments(house.events, writer(house.events, Date.now)).pay('prepaid', transaction, 100, reason);
  assert.is(await pay('t1'), 'refused');
  await topUp(house, 'a', 150);
  assert.is(await pay('t1'), 'refused');
  assert.is(await pay('t2'), 'debited');
  assert.is(await pay('t2'), 'debited');
  assert.is(await balance(house), 50);
});

test('the balance never goes below zero, however many debit it at once', async ({ house }) => {
  await topUp(house, 'a', 1_000);
  const payers = Array.from({ length: 3 }, () => walletPayments(house.events, writer(house.events, Date.now)));
  const outcomes = await Promise.all(Array.from({ length: 45 }, (_, n) => payers[n % 3]!.pay('prepaid', `t${n % 30}`, 70, reason)));
  let lowest = 0;
  let at = 0;
  for (const { type, data } of await house.events.read('wallet-prepaid')) {
    const { amount } = data as { amount: number };
    at += type === 'WalletToppedUp' ? amount : type === 'WalletDebited' ? -amount : 0;
    lowest = Math.min(lowest, at);
  }
  assert.is(lowest, 0);
  assert.is(at, 1_000 - 14 * 70);
  for (let n = 0; n < 15; n++) assert.is(outcomes[n], outcomes[n + 30], 'the same transaction has the same outcome');
});

test('a refund is credited once, whoever asks and however often, and never more than was debited', async ({ house }) => {
  await topUp(house, 'a', 500);
  const payers = Array.from({ length: 3 }, () => walletPayments(house.events, writer(house.events, Date.now)));
  await payers[0]!.pay('prepaid', 't1', 400, reason);
  const outcomes = await Promise.all(Array.from({ length: 30 }, (_, n) => payers[n % 3]!.refund('prepaid', 't1', 100, `r${n % 5}`, reason)));
  assert.is(await balance(house), 500);
  for (let n = 0; n < 5; n++) assert.is(new Set(outcomes.filter((_, at) => at % 5 === n)).size, 1, 'the same refund has the same outcome');
  assert.is(outcomes.filter((outcome) => outcome === 'refused').length, 6);
});

test('remembers a hundred wallets, and knows the others all the same', async ({ house }) => {
  const payments = walletPayments(house.events, writer(house.events, Date.now));
  const references = Array.from({ length: 102 }, (_, n) => `w${n}`);
  await Promise.all(references.map((reference) => house.append(`wallet-${reference}`, 'WalletToppedUp', { top_up_id: 'a', amount: 100 })));
  await Promise.all(references.map(async (reference) => assert.is(await payments.pay(reference, 't1', 60, reason), 'debited')));
  await Promise.all(references.map(async (reference) => assert.is(await payments.pay(reference, 't2', 60, reason), 'refused')));
});

test('gives up after many lost races, and goes on with the next', async ({ house }) => {
  const loser: Writer = { append: async () => undefined };
  const payments = walletPayments(house.events, loser);
  const outcomes = await Promise.allSettled([payments.pay('prepaid', 't1', 1, reason), payments.pay('prepaid', 't2', 1, reason)]);
  assert.equal(outcomes.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as Error).name : '')), ['ConflictError', 'ConflictError']);
});

test.run();
