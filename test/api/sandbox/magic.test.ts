/** Every card, number and device token of docs/api/sandbox.md#cards and #numbers does what is said of it there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { giftIdsIn } from '../../../src/domain/giftIds.js';
import type { GiftsPurchased } from '../../../src/domain/purchase/events.js';
import { eventually } from '../../support/assertions/until.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { purchaseOf } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService, userTokenOf } from '../../support/service/service.js';

/** The event that ends the charge, with its decline code; or what it waits for. */
const CARDS: Readonly<Record<string, string>> = {
  pm_card_visa: 'PaymentCharged',
  pm_card_chargeDeclined: 'PaymentDeclined generic_decline',
  pm_card_chargeDeclinedInsufficientFunds: 'PaymentDeclined insufficient_funds',
  pm_card_chargeDeclinedLostCard: 'PaymentDeclined lost_card',
  pm_card_chargeDeclinedStolenCard: 'PaymentDeclined stolen_card',
  pm_card_chargeDeclinedExpiredCard: 'PaymentDeclined expired_card',
  pm_card_chargeDeclinedIncorrectCvc: 'PaymentDeclined incorrect_cvc',
  pm_card_chargeDeclinedProcessingError: 'PaymentDeclined processing_error',
  pm_card_chargeDeclinedVelocityLimitExceeded: 'PaymentDeclined card_velocity_exceeded',
  pm_card_detached: 'PaymentDeclined invalid_request_error',
  pm_card_slow: 'PaymentCharged',
  pm_card_flaky: 'PaymentCharged',
  pm_card_answerLost: 'PaymentCharged',
  pm_card_refundFail: 'PaymentCharged',
  pm_card_authenticationRequired: 'waits',
  pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: 'waits',
  pm_card_away: 'waits',
  pm_card_parked: 'parked',
  pm_card_createDispute: 'PaymentCharged',
  pm_card_disputeWon: 'PaymentCharged',
  pm_card_disputeLost: 'PaymentCharged',
  pm_card_refundedByHand: 'PaymentCharged',
};
const NUMBERS: Readonly<Record<string, string>> = {
  '+15005550001': 'NotificationFailed invalid number',
  '+15005550002': 'NotificationFailed number can not be reached',
  '+15005550009': 'NotificationFailed not a mobile number',
  '+15005550006': 'NotificationSent',
  '+15005550007': 'NotificationSent',
  '+15005550008': 'NotificationSent',
  '+15005550005': 'waits',
  '+15005550004': 'parked',
};
const GONE = 'device-token-gone';
/** Longer than an hour and the quarter of it by which retries are spread, seconds. */
const AWAY_SECONDS = 4_600;

const test = suite('cards and numbers of the sandbox');
let service: Service;

test.before(async () => {
  const [someone] = CATALOGUE.users as [object];
  service = await startService({
    env: { SANDBOX: '1', CHARGE_WAIT_MS: '0' },
    catalogue: {
      ...CATALOGUE,
      users: [
        ...CATALOGUE.users,
        { ...someone, id: 'lia', username: 'lia@test.example', device_tokens: [GONE], phone_number: '07700 900077' },
      ],
      payment_methods: Object.keys(CARDS).map((reference) => ({ reference, kind: 'card', users: ['ann'] })),
    },
  });
});
test.after(() => service.close());

async function buy(receiver: object, reference: string): Promise<Reply> {
  const token = await userTokenOf(service.url, 'ann');
  const body = purchaseOf('latte', [receiver], { reference });
  return service.ask('POST', '/api/v2/transactions', { token, body });
}

async function bought(receiver: object, reference = 'pm_card_visa'): Promise<{ transaction: string; gift: string }> {
  const { headers, text } = await buy(receiver, reference);
  const transaction = /\/transactions\/(\w+)/.exec(headers.get('location') ?? '')?.[1] ?? '';
  const [made] = await service.events.read(`transaction-${transaction}`, { limit: 1 });
  const { seed } = (made?.data ?? assert.fail(text)) as GiftsPurchased['data'];
  return { transaction, gift: giftIdsIn(seed, 1)(0).gift_id };
}

async function outcome(stream: string, ends: readonly string[]): Promise<string | undefined> {
  const end = (await service.events.read(stream)).find(({ type }) => ends.includes(type));
  if (end === undefined) return undefined;
  const { code, cause } = end.data as { readonly code?: string; readonly cause?: string };
  return [end.type, code ?? cause].filter(Boolean).join(' ');
}

async function advance(seconds: number): Promise<void> {
  const app = { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' };
  const token = (await service.ask('POST', '/oauth/token', { body: app })).json.access_token as string;
  const reply = await service.ask('POST', '/sandbox/clock', { token, body: { advance: seconds } });
  assert.equal(reply.status, 200, reply.text);
}

const CHARGED = ['PaymentCharged', 'PaymentDeclined'];
const SETTLED = ['NotificationSent', 'NotificationFailed'];
const ofCharge = (transaction: string): Promise<string | undefined> => outcome(`transaction-${transaction}`, CHARGED);
const ofNotification = (gift: string): Promise<string | undefined> => outcome(`notification-${gift}`, SETTLED);

async function parked(step: string, entity: string): Promise<true> {
  return eventually(async () => {
    const reply = await service.ask('GET', '/ops/parked', { token: await userTokenOf(service.url, 'sue') });
    return (reply.json.data as Json[]).some((work) => JSON.stringify(work).includes(entity)) || undefined;
  }, `${step} of ${entity} to be parked`);
}

test('stand in docs/api/sandbox.md, all of them', () => {
  const page = readFileSync(new URL('../../../../docs/api/sandbox.md', import.meta.url), 'utf8');
  const named = [...page.matchAll(/`(pm_card_\w+|\+1500555\d{4}|device-token-gone)`/g)].map(([, name]) => name);
  assert.deepEqual(new Set(named), new Set([...Object.keys(CARDS), ...Object.keys(NUMBERS), GONE]));
});

test('cards are charged, declined, parked, or wait for the buyer or an hour', async () => {
  const cards = await Promise.all(
    Object.entries(CARDS).map(async ([card, ends]) => ({ card, ends, ...(await bought({}, card)) })),
  );
  const waiting = cards.filter(({ ends }) => ends === 'waits');
  for (const { card, ends, transaction } of cards)
    if (ends === 'parked') await parked('charge', transaction);
    else if (ends !== 'waits') assert.equal(await eventually(() => ofCharge(transaction), card), ends, card);
  for (const { card, transaction } of waiting) assert.equal(await ofCharge(transaction), undefined, card);
  const store = await service.openStore();
  const kept = await store.records.list('charge/');
  await store.close();
  const charges = kept.map(({ key }) => key);
  const [lost] = cards.filter(({ card }) => card === 'pm_card_answerLost');
  assert.equal(charges.filter((key) => key.includes(lost?.transaction ?? '')).length, 1);
  await advance(AWAY_SECONDS);
  const later = await Promise.all(
    waiting.map(async ({ card, transaction }) => [card, await eventually(() => ofCharge(transaction), card)]),
  );
  assert.deepEqual(Object.fromEntries(later), {
    pm_card_authenticationRequired: 'PaymentDeclined authentication_required',
    pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: 'PaymentDeclined authentication_required',
    pm_card_away: 'PaymentCharged',
  });
});

test('a card that can not be refunded leaves its refund parked', async () => {
  const { transaction } = await bought({}, 'pm_card_refundFail');
  await eventually(() => ofCharge(transaction));
  const token = await userTokenOf(service.url, 'sue');
  await eventually(async () => {
    const body = { reason: 'no milk' };
    return (await service.ask('POST', `/ops/transactions/${transaction}/refund`, { token, body })).status < 300;
  });
  await parked('refund', transaction);
});

test('cards are disputed, or refunded by hand, once they are charged', async () => {
  const ends = async (reference: string, of: 'gift' | 'transaction', type: string): Promise<string> => {
    const made = await bought({}, reference);
    await eventually(() => outcome(`${of}-${made[of]}`, [type]), `${type} of ${reference}`);
    return made.gift;
  };
  const [, won, lost] = await Promise.all([
    ends('pm_card_createDispute', 'gift', 'GiftBlocked'),
    ends('pm_card_disputeWon', 'transaction', 'DisputeClosed'),
    ends('pm_card_disputeLost', 'gift', 'GiftBlocked'),
    ends('pm_card_refundedByHand', 'gift', 'GiftCancelled'),
  ]);
  const token = await userTokenOf(service.url, 'till-coffee');
  const redeemed = async (gift: string): Promise<number> => {
    const body = { location_id: 'bean-soho' };
    return (await service.ask('POST', `/api/v2/gifts/${gift}/redemptions`, { token, body })).status;
  };
  assert.equal(await redeemed(lost), 405);
  await eventually(async () => (await redeemed(won)) === 201);
  const day = new Date().toISOString().slice(0, 10);
  const path = `/ops/payments/reconciliation?day=${day}&time_zone=UTC`;
  const report = await service.ask('GET', path, { token: await userTokenOf(service.url, 'aud') });
  const differences = report.text.trimEnd().split('\n').slice(0, -1);
  assert.deepEqual(
    differences.filter((line) => line.includes('"refund"')),
    [],
    'what was given back by hand is in the ledger of the provider, too',
  );
});

test('numbers and devices are reached, can not be, or have to wait an hour', async () => {
  const numbers = await Promise.all(
    Object.entries(NUMBERS).map(async ([phone_number, ends]) => ({
      phone_number,
      ends,
      ...(await bought({ phone_number })),
    })),
  );
  const { gift: toDevice } = await bought({ user_id: 'lia' });
  for (const { phone_number, ends, gift } of numbers)
    if (ends === 'parked') await parked('notify', gift);
    else if (ends !== 'waits')
      assert.equal(await eventually(() => ofNotification(gift), phone_number), ends, phone_number);
  assert.equal(await eventually(() => ofNotification(toDevice)), 'NotificationFailed device token is gone');
  const undelivered = numbers.find(({ phone_number }) => phone_number === '+15005550006');
  const reported = (): Promise<string | undefined> =>
    outcome(`notification-${undelivered?.gift}`, ['NotificationUndelivered']);
  assert.equal(await eventually(reported), 'NotificationUndelivered unreachable handset');
  const waiting = numbers.find(({ ends }) => ends === 'waits');
  assert.ok(waiting !== undefined);
  assert.equal(await ofNotification(waiting.gift), undefined);
  await advance(AWAY_SECONDS);
  assert.equal(await eventually(() => ofNotification(waiting.gift)), 'NotificationSent');
});

test.run();
