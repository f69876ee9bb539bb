/**
 * The service with Stripe's own library against a stand-in for its API: buyers who must prove who they are, and what
 * Stripe tells by webhooks.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import type { EventStore, RecordedEvent } from '../../src/ports/eventStore.js';
import { buy, purchaseOf, redeem, refused } from '../support/service/giftFlow.js';
import { eventOf } from '../support/service/testLog.js';
import { requestText, sendRaw } from '../support/service/rawHttp.js';
import { paymentSettings } from '../support/providers/realProviders.js';
import { type Json, type Reply, type Service, startService } from '../support/service/service.js';
import { openStripeServer, type StripeIntent, type StripeServer } from '../support/providers/stripeServer.js';
import {
  dispute,
  paymentFailed,
  refunded,
  signed,
  stripeMessage,
  succeeded,
  type Webhook,
} from '../support/providers/stripeWebhooks.js';
import { eventually, until } from '../support/assertions/until.js';
import { answerChecker } from './openapi/check.js';

const test = suite('payments by Stripe');
const SECRET = `whsec_${randomBytes(16).toString('hex')}`;
const CHALLENGED = 'pm_card_authenticationRequired';
const DECLINED = 'pm_card_chargeDeclined';
let stripe: StripeServer;
let service: Service;
let faultOf: ReturnType<typeof answerChecker>;

test.before(async () => {
  stripe = await openStripeServer();
  service = await startService({ env: { ...paymentSettings(stripe), STRIPE_WEBHOOK_SECRET: SECRET } });
  const card = (reference: string): object => ({ reference, kind: 'card', users: ['ann'], customer: 'cus_ann' });
  await service.import({ payment_methods: [CHALLENGED, DECLINED].map(card) });
  faultOf = answerChecker((await service.ask('GET', '/openapi.json')).json as object);
});
test.after(async () => {
  await service.close();
  await stripe.close();
});

const send = ({ body, headers }: Webhook): Promise<Reply> => service.ask('POST', '/webhooks/stripe', { body, headers });
const tell = async (message: object): Promise<string> => {
  const reply = await send(signed(message, SECRET));
  assert.deepEqual([reply.status, reply.headers.get('cache-control')], [200, 'no-store'], reply.text);
  assert.equal(faultOf({ method: 'POST', path: '/webhooks/stripe', status: 200, body: reply.json }), undefined);
  return reply.json.outcome as string;
};
const purchase = async (reference: string, key?: string): Promise<Reply> =>
  service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ user_id: 'bob' }], { reference }),
    ...(key === undefined ? {} : { key }),
  });
const get = async (path: string, headers = {}): Promise<Reply> =>
  service.ask('GET', path, { token: await service.userToken('ann'), headers });
const idIn = (reply: Reply): string => reply.headers.get('location')?.split('/')[4] ?? '';
const intentOf = (transactionId: string): StripeIntent => {
  const intent = stripe.intents.find(({ metadata }) => metadata['transaction_id'] === transactionId);
  if (intent === undefined) throw new Error('no intent');
  return intent;
};
const types = async (transactionId: string): Promise<string[]> =>
  (await service.events.read(`transaction-${transactionId}`)).map(({ type }) => type);
async function everything(events: EventStore): Promise<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  for await (const batch of events.readAll(undefined)) found.push(...batch.events);
  return found;
}
const told = (gift: string): Promise<void> =>
  until(async () =>
    (await service.events.read(`notification-${gift}`)).some(({ type }) => type !== 'NotificationStarted'),
  );
/** Bought, charged and told: the transaction and its gifts. */
async function bought(count: number): Promise<{ id: string; gifts: readonly string[]; intent: StripeIntent }> {
  const gifts = await buy(
    service,
    'latte',
    Array.from({ length: count }, () => ({ user_id: 'bob' })),
  );
  const id = (await get(`/api/v2/gifts/${gifts[0]}`)).json.data.transaction_id as string;
  for (const gift of gifts) await told(gift);
  return { id, gifts, intent: intentOf(id) };
}
/** As of the log's end: who has seen an event there may ask before the read model has. */
async function statusOf(gift: string): Promise<string> {
  const position = `${service.events.logId}:${await service.events.end()}`;
  return (await get(`/api/v2/gifts/${gift}`, { 'gift-position': position })).json.data.gift_status as string;
}

test('a buyer who must prove who they are gets what it takes; the webhook settles it', async () => {
  const reply = await purchase(CHALLENGED, 'challenge-1');
  const id = idIn(reply);
  const intent = intentOf(id);
  const requested = {
    error: 'Payment needs authentication.',
    next_action: { type: 'use_stripe_sdk', client_secret: intent.client_secret },
  };
  assert.deepEqual([reply.status, reply.json], [402, requested]);
  const written = (await service.events.read(`transaction-${id}`)).at(-1)?.position ?? '';
  assert.equal(reply.headers.get('gift-position'), `${service.events.logId}:${written}`);
  assert.equal(faultOf({ method: 'POST', path: '/api/v2/transactions', status: 402, body: reply.json }), undefined);
  const now = await get(`/api/v2/transactions/${id}`);
  assert.deepEqual([now.status, now.json], [402, requested]);
  assert.equal(faultOf({ method: 'GET', path: `/api/v2/transactions/${id}`, status: 402, body: now.json }), undefined);
  const gift = (await get(`/api/v2/transactions/${id}/gifts`)).json.data[0].id as string;
  assert.equal(await statusOf(gift), 'pending');
  refused(await redeem(service, gift), 405, 'gift is not paid for yet.');

  const again = await purchase(CHALLENGED, 'challenge-1');
  assert.deepEqual(
    [
      again.status,
      again.json,
      again.headers.get('idempotent-replayed'),
      again.headers.get('location'),
      again.headers.get('gift-position'),
    ],
    [402, requested, 'true', reply.headers.get('location'), reply.headers.get('gift-position')],
  );
  assert.equal(stripe.intents.filter(({ metadata }) => metadata['transaction_id'] === id).length, 1);

  const message = succeeded(stripe.authenticate(intent.id, true));
  const proved = await get(`/api/v2/transactions/${id}`);
  assert.deepEqual([proved.status, proved.json.data?.gifts], [200, [gift]], 'the provider waits for nobody any more');
  assert.equal(await tell(message), 'recorded');
  await until(async () => (await statusOf(gift)) === 'sent');
  stripe.fault = () => ({ kind: 'error', when: 'undone' });
  const paid = await get(`/api/v2/transactions/${id}`).finally(() => (stripe.fault = () => undefined));
  assert.deepEqual([paid.status, paid.json.data?.gifts], [200, [gift]], 'Stripe is not asked about what is settled');
  const later = await purchase(CHALLENGED, 'challenge-1');
  assert.deepEqual([later.status, later.json, later.headers.get('idempotent-replayed')], [402, requested, 'true']);
  const records = await service.openStore();
  for (const { key } of await records.records.list('idempotency:')) await records.records.delete(key);
  await records.close();
  const forgotten = await purchase(CHALLENGED, 'challenge-1');
  assert.deepEqual(
    [forgotten.status, forgotten.json, forgotten.headers.get('idempotent-replayed')],
    [402, requested, 'true'],
  );
  await told(gift);
  const end = await service.events.end();
  assert.equal(await tell(message), 'known');
  assert.equal(await service.events.end(), end);
  assert.deepEqual(await types(id), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentAuthenticationRequired',
    'PaymentCharged',
  ]);
  assert.equal(stripe.charges(id), 1);
  // The secret is the buyer's: it stands nowhere.
  assert.ok(!JSON.stringify(await everything(service.events)).includes(intent.client_secret));
  assert.ok(!service.log.join('\n').includes(intent.client_secret));
  const store = await service.openStore();
  try {
    assert.ok(!JSON.stringify(await store.records.list('')).includes(intent.client_secret));
  } finally {
    await store.close();
  }
});

test('a buyer who fails to prove it: payment and gifts are cancelled', async () => {
  const id = idIn(await purchase(CHALLENGED));
  const intent = stripe.authenticate(intentOf(id).id, false);
  const message = paymentFailed(intent, 'payment_intent_authentication_failure');
  assert.equal(await tell(message), 'recorded');
  await until(async () => (await get(`/api/v2/transactions/${id}`)).json.error === 'Payment declined.');
  const declined = await get(`/api/v2/transactions/${id}`);
  assert.equal(declined.headers.get('decline-code'), 'authentication_required');
  assert.equal(await tell(message), 'known');
  assert.equal(intent.status, 'canceled');
  assert.deepEqual(await types(id), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentAuthenticationRequired',
    'PaymentAuthenticationFailed',
    'PaymentDeclined',
  ]);
  assert.equal(await statusOf((await get(`/api/v2/transactions/${id}/gifts`)).json.data[0].id as string), 'cancelled');
});

test('a success after a decline is given back at once, once', async () => {
  const id = idIn(await purchase(DECLINED));
  const intent = intentOf(id);
  assert.equal(intent.status, 'canceled');
  // Stripe had it succeed after all.
  intent.status = 'succeeded';
  const message = succeeded(intent);
  assert.deepEqual((await Promise.all([message, message, message].map(tell))).toSorted(), [
    'known',
    'known',
    'recorded',
  ]);
  await until(async () => (await types(id)).includes('GiftsRefunded'));
  assert.equal(stripe.refunded(id), intent.amount);
  assert.equal(stripe.refunds.filter(({ payment_intent }) => payment_intent === intent.id).length, 1);
  assert.equal(await tell(refunded(intent, intent.amount)), 'known', 'that is our own refund');
  assert.equal(await tell(succeeded(intent)), 'known', 'the same under another id');
  assert.equal((await get(`/api/v2/transactions/${id}`)).json.error, 'Payment declined.');
});

test('a second charge of one purchase is given back; the first stays', async () => {
  const { id, intent } = await bought(1);
  const second: StripeIntent = { ...intent, id: 'pi_second', latest_charge: 'ch_second' };
  stripe.intents.push(second);
  assert.equal(await tell(succeeded(second)), 'recorded');
  await until(async () => (await types(id)).includes('GiftsRefunded'));
  assert.deepEqual(
    stripe.refunds.filter(({ payment_intent }) => payment_intent === second.id).map(({ amount }) => amount),
    [intent.amount],
  );
  assert.equal(
    stripe.refunds.some(({ payment_intent }) => payment_intent === intent.id),
    false,
  );
});

test('a dispute blocks what is not redeemed; when it is won, that is freed', async () => {
  const {
    id,
    gifts: [first = '', second = '', third = ''],
    intent,
  } = await bought(3);
  assert.equal((await redeem(service, first)).status, 201);
  const opened = dispute('created', intent, { disputeId: 'dp_1', status: 'needs_response' });
  assert.equal(await tell(opened), 'recorded');
  await until(async () => (await types(id)).includes('DisputeSettled'));
  refused(await redeem(service, second), 405, 'gift is blocked.');
  refused(await redeem(service, third), 405, 'gift is blocked.');
  assert.equal(await tell(opened), 'known');
  assert.equal(await tell(dispute('closed', intent, { disputeId: 'dp_1', status: 'won' })), 'recorded');
  await until(async () => (await types(id)).filter((type) => type === 'DisputeSettled').length === 2);
  assert.equal((await redeem(service, second)).status, 201);
  assert.equal(await tell(opened), 'known', 'told late, it changes nothing');
  assert.equal((await redeem(service, third)).status, 201);
});

test('a dispute whose end arrives first, and one that is lost', async () => {
  const won = await bought(1);
  assert.equal(await tell(dispute('closed', won.intent, { disputeId: 'dp_2', status: 'warning_closed' })), 'recorded');
  assert.equal(
    await tell(dispute('created', won.intent, { disputeId: 'dp_2', status: 'warning_needs_response' })),
    'known',
  );
  await until(async () => (await types(won.id)).includes('DisputeSettled'));
  assert.equal((await redeem(service, won.gifts[0] ?? '')).status, 201);
  const lost = await bought(1);
  assert.equal(await tell(dispute('closed', lost.intent, { disputeId: 'dp_3', status: 'lost' })), 'recorded');
  await until(async () => (await types(lost.id)).includes('DisputeSettled'));
  refused(await redeem(service, lost.gifts[0] ?? ''), 405, 'gift is blocked.');
});

test('money given back at the provider cancels what is not redeemed; the difference is parked', async () => {
  const {
    id,
    gifts: [first = '', second = '', third = ''],
    intent,
  } = await bought(3);
  assert.equal((await redeem(service, first)).status, 201);
  stripe.refundByHand(intent.id, intent.amount);
  const message = refunded(intent, intent.amount);
  assert.equal(await tell(message), 'recorded');
  await until(async () => (await types(id)).includes('ProviderRefundSettled'));
  refused(await redeem(service, second), 405, 'gift is cancelled and cannot be redeemed.');
  assert.deepEqual([await statusOf(third), await statusOf(first)], ['cancelled', 'redeemed']);
  const parked = await eventually(async () =>
    (await service.events.read('parked-refund')).find(({ data }) => (data as Json).entity === id),
  );
  assert.match(
    JSON.stringify(parked.data),
    /£10\.50 was given back at the provider; 2 gifts are cancelled for it; £3\.50 of it no unredeemed gift makes up for/,
  );
  assert.equal(await tell(message), 'known');
  assert.equal(await tell(refunded(intent, 350)), 'known', 'an earlier one, told late');
  assert.equal(
    (await service.events.read('parked-refund')).filter(({ data }) => (data as Json).entity === id).length,
    1,
  );
});

test('part of the money: as many gifts as it paid for, from the last', async () => {
  const { id, gifts, intent } = await bought(3);
  assert.equal(await tell(refunded(intent, 350)), 'recorded');
  await until(async () => (await types(id)).includes('ProviderRefundSettled'));
  assert.deepEqual(await Promise.all(gifts.map(statusOf)), ['sent', 'sent', 'cancelled']);
  assert.equal(await tell(refunded(intent, 700)), 'recorded');
  await until(async () => (await types(id)).filter((type) => type === 'ProviderRefundSettled').length === 2);
  assert.deepEqual(await Promise.all(gifts.map(statusOf)), ['sent', 'cancelled', 'cancelled']);
});

test('a refund that Stripe took on and could not deliver is parked, once', async () => {
  const { id, gifts, intent } = await bought(1);
  await service.events.append(
    `transaction-${id}`,
    [eventOf('RefundRequested', { refund_id: 'undelivered', gift_ids: gifts, voided: false, reason: 'x' })],
    'any',
  );
  await until(async () => (await types(id)).includes('GiftsRefunded'));
  const [made] = stripe.refunds;
  const message = (status: string, type = 'refund.updated'): object =>
    stripeMessage(type, {
      ...made,
      payment_intent: intent.id,
      status,
      failure_reason: status === 'failed' ? 'lost_or_stolen_card' : null,
    });
  assert.equal(await tell(message('succeeded')), 'ignored');
  assert.equal(await tell(message('failed', 'refund.failed')), 'recorded');
  assert.equal(await tell(message('failed')), 'known');
  const parked = async (): Promise<RecordedEvent[]> =>
    (await service.events.read('parked-refund')).filter(
      ({ data }) => (data as { entity: string }).entity === 'undelivered',
    );
  await until(async () => (await parked()).length > 0);
  assert.deepEqual(
    (await parked()).map(({ data }) => (data as { cause: string }).cause),
    ['stripe refuses the refund: lost_or_stolen_card'],
  );
  assert.deepEqual((await types(id)).slice(-3), ['RefundStarted', 'GiftsRefunded', 'RefundFailed']);
});

/** A refund of the first gift, which Stripe has taken on and could not deliver. @returns how Stripe tells that */
async function undelivered(id: string, gifts: readonly string[]): Promise<object> {
  const refund_id = `undelivered-${id}`;
  await service.events.append(
    `transaction-${id}`,
    [eventOf('RefundRequested', { refund_id, gift_ids: gifts.slice(0, 1), voided: false, reason: 'x' })],
    'any',
  );
  await until(async () => (await types(id)).includes('GiftsRefunded'));
  const made = stripe.refunds.find(({ metadata }) => metadata['refund_id'] === refund_id);
  Object.assign(made ?? {}, { status: 'failed' });
  return stripeMessage('refund.failed', { ...made, failure_reason: 'lost_or_stolen_card' });
}

test('late news of a failed refund does not count as a refund by hand', async () => {
  const { id, gifts, intent } = await bought(1);
  assert.equal(await tell(await undelivered(id, gifts)), 'recorded');
  assert.equal(await tell(refunded(intent, intent.amount)), 'known');
  stripe.refundByHand(intent.id, intent.amount);
  assert.equal(await tell(refunded(intent, intent.amount)), 'recorded');
});

test('counts a refund by hand that came before the failure of ours, and costs no other gift', async () => {
  const { id, gifts, intent } = await bought(2);
  const failure = await undelivered(id, gifts);
  stripe.refundByHand(intent.id, 350);
  assert.equal(await tell(refunded(intent, 350)), 'known');
  assert.equal(await tell(failure), 'recorded');
  await until(async () => (await types(id)).includes('ProviderRefundSettled'));
  assert.deepEqual((await types(id)).slice(-3), ['RefundFailed', 'RefundedAtProvider', 'ProviderRefundSettled']);
  assert.equal(await statusOf(gifts[1] ?? ''), 'sent');
});

test('a dispute that was prevented has cost the money: its gifts stay blocked', async () => {
  const { id, intent } = await bought(1);
  const about = (kind: 'created' | 'closed', status: string): object =>
    dispute(kind, intent, { disputeId: `dp_prevented_${id}`, status });
  await tell(about('created', 'needs_response'));
  await tell(about('closed', 'prevented'));
  assert.deepEqual(
    (await service.events.read(`transaction-${id}`))
      .filter(({ type }) => type === 'DisputeClosed')
      .map(({ data }) => (data as { outcome: string }).outcome),
    ['lost'],
  );
});

test('forged, stale, changed, unsigned: refused, nothing changed', async () => {
  const { intent } = await bought(1);
  const end = await service.events.end();
  const message = dispute('created', intent, { disputeId: 'dp_forged', status: 'needs_response' });
  const good = signed(message, SECRET);
  const bad: Webhook[] = [
    signed(message, 'whsec_somebody_elses'),
    signed(message, SECRET, 301),
    signed(message, SECRET, 86_400),
    { ...good, body: good.body.replace('fraudulent', 'duplicate') },
    { ...good, body: ` ${good.body}` },
    { ...good, headers: { 'content-type': 'application/json' } },
    { ...good, headers: { 'stripe-signature': '' } },
    { ...good, headers: { 'stripe-signature': 't=1,v1=00' } },
    { ...good, body: '' },
  ];
  for (const one of bad) {
    const reply = await send(one);
    refused(reply, 400, 'Invalid signature.');
    assert.equal(faultOf({ method: 'POST', path: '/webhooks/stripe', status: 400, body: reply.json }), undefined);
  }
  assert.equal(await service.events.end(), end);
  // Only a service in this process shows its log.
  if (service.log.length > 0) assert.ok(service.log.some((line) => line.includes('bad signature')));
});

test('refuses signed nonsense, and ignores foreign events so that they are not sent again', async () => {
  const { intent } = await bought(1);
  const end = await service.events.end();
  const nonsense: (object | string)[] = [
    'no JSON',
    '[]',
    {},
    { ...stripeMessage('charge.refunded', {}), data: 7 },
    { ...stripeMessage('customer.created', {}), data: {} },
    { ...stripeMessage('customer.created', { id: 'cus_1' }), id: undefined },
    stripeMessage('charge.refunded', {}),
    stripeMessage('charge.refunded', { payment_intent: 'pi', amount_refunded: '5' }),
    stripeMessage('payment_intent.succeeded', { id: 'pi' }),
    stripeMessage('charge.dispute.created', { id: 7 }),
    stripeMessage('charge.dispute.closed', { id: 'dp', amount: 5, reason: 'general', status: 'won' }),
    stripeMessage('refund.failed', { id: 're', payment_intent: 'pi' }),
  ];
  for (const one of nonsense) {
    const { status, json } = await send(signed(one, SECRET));
    assert.equal(status, 400);
    assert.match(json.error, /^Invalid event: .+\.$/);
  }
  refused(
    await send(signed(stripeMessage('payment_intent.succeeded', { id: 'pi' }), SECRET)),
    400,
    "Invalid event: malformed payment_intent: payment_intent must have required property 'amount_received'.",
  );
  const foreign = [
    stripeMessage('customer.created', { id: 'cus_1' }),
    stripeMessage('constructor', { id: 'cus_1' }),
    succeeded({ ...intent, metadata: { transaction_id: '00'.repeat(16) } }),
    succeeded({ ...intent, metadata: { transaction_id: '../elsewhere' } }),
    succeeded({ id: 'pi_of_the_shop', amount: 100, metadata: {} }),
    refunded({ ...intent, metadata: { transaction_id: '00'.repeat(16) } }, 100),
    dispute('created', { ...intent, id: 'pi_of_the_shop' }, { disputeId: 'dp_x', status: 'needs_response' }),
    stripeMessage('charge.refunded', { id: 'ch', amount_refunded: 5, payment_intent: null }),
    stripeMessage('charge.dispute.closed', {
      id: 'dp',
      amount: 5,
      payment_intent: null,
      reason: 'general',
      status: 'won',
    }),
  ];
  for (const one of foreign) assert.equal(await tell(one), 'ignored');
  assert.equal(await tell(paymentFailed(intent, 'card_declined')), 'known', 'the charge had been settled');
  assert.equal(await service.events.end(), end);
});

test('too large, or of another method', async () => {
  const ofBytes = (bytes: number): Webhook => {
    const text = (length: number): object => stripeMessage('customer.created', { text: 'x'.repeat(length) });
    return signed(text(bytes - Buffer.byteLength(signed(text(0), SECRET).body)), SECRET);
  };
  assert.equal((await send(ofBytes(1_048_576))).status, 200);
  const large = ofBytes(1_048_577);
  refused(await send(large), 413, 'Request too large.');
  const unsent = await sendRaw(
    service.url,
    requestText('POST', '/webhooks/stripe', { ...large.headers, 'Content-Length': '1048577' }),
  );
  assert.equal(unsent?.status, 413, 'by its length alone');
  const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const chunked = await sendRaw(
    service.url,
    [
      requestText('POST', '/webhooks/stripe', { ...large.headers, 'Transfer-Encoding': 'chunked' }),
      ...Array<string>(20).fill(piece),
    ],
    { pauseMs: 1 },
  );
  assert.deepEqual([chunked?.status, chunked?.body], [413, '{"error":"Request too large."}']);
  assert.equal((await service.ask('GET', '/webhooks/stripe')).status, 405);
  const packed = signed(stripeMessage('customer.created', {}), SECRET);
  refused(
    await send({ ...packed, headers: { ...packed.headers, 'content-encoding': 'gzip' } }),
    415,
    'Unsupported content type.',
  );
});

test('while Stripe cannot be asked whose a payment is, it is to send its message again', async () => {
  const { id, intent } = await bought(1);
  const message = dispute('created', intent, { disputeId: 'dp_9', status: 'needs_response' });
  stripe.fault = () => ({ kind: 'error', when: 'undone' });
  try {
    refused(await send(signed(message, SECRET)), 503, 'Service unavailable.');
  } finally {
    stripe.fault = () => undefined;
  }
  assert.deepEqual(await types(id), ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);
  assert.equal(await tell(message), 'recorded');
});

test.run();
