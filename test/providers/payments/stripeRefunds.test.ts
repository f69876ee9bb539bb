import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RefundRequest } from '../../../src/messages/payments.js';
import type { PaymentProvider } from '../../../src/providers/payments/provider.js';
import { stripePayments } from '../../../src/providers/payments/stripe.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../../src/providers/providerErrors.js';
import { rejects } from '../../support/assertions/rejects.js';
import type { Requested, Fault } from '../../support/providers/standIn.js';
import { openStripeServer, type StripeServer } from '../../support/providers/stripeServer.js';

const test = suite<{
  server: StripeServer;
  payments: PaymentProvider;
  chargeOf: (method: string, amount?: number) => Promise<RefundRequest>;
}>('refunds by stripe');

const HOUR = 3_600_000;
let now = Date.now();
let serial = 0;

const open = (server: StripeServer, timeoutMs: number): PaymentProvider =>
  stripePayments(
    { secretKey: server.secretKey, apiUrl: server.url },
    { logger: pino({ level: 'silent' }), now: () => now, timeoutMs, circuitBreaker: { failures: 50 } },
  );

test.before.each(async (context) => {
  now = Date.now();
  const server = await openStripeServer();
  const payments = open(server, 5_000);
  const chargeOf = async (method: string, amount = 1_000): Promise<RefundRequest> => {
    const transaction_id = `t-${++serial}`;
    const started_at = new Date(now).toISOString();
    const charged = await payments.charge({
      transaction_id,
      amount,
      payment_reference: method,
      customer: null,
      started_at,
    });
    if (charged.outcome !== 'charged') throw new Error('not charged');
    return {
      refund_id: `r-${serial}`,
      attempt: 1,
      transaction_id,
      amount,
      provider: 'stripe',
      charge_id: charged.charge_id,
      payment_reference: method,
      started_at,
    };
  };
  Object.assign(context, { server, payments, chargeOf });
});
test.after.each((context) => context.server.close());

const isCreate = ({ method, path }: Requested): boolean => method === 'POST' && path === '/v1/refunds';
function once(server: StripeServer, fault: Fault): void {
  server.fault = (requested) => {
    if (!isCreate(requested)) return undefined;
    server.fault = () => undefined;
    return fault;
  };
}
const refused = (code: string): object => ({ outcome: 'refused', provider: 'stripe', code, simulated: false });

test('gives a part back once, under the refund and its attempt as key and metadata', async ({
  server,
  payments,
  chargeOf,
}) => {
  const request = { ...(await chargeOf('pm_card_visa')), amount: 400 };
  assert.equal(await payments.lookUpRefund(request), { outcome: 'never' });
  const reply = await payments.refund(request);
  assert.equal(reply, { outcome: 'refunded', provider: 'stripe', refund_ref: server.refunds[0]?.id, simulated: false });
  assert.equal(await payments.refund(request), reply);
  assert.equal(await payments.lookUpRefund(request), reply);
  assert.is(server.refunded(request.transaction_id), 400);
  const made = server.requested.find(isCreate);
  assert.is(made?.headers['idempotency-key'], `refund-${request.refund_id}-1`);
  assert.equal(Object.fromEntries(new URLSearchParams(made?.body)), {
    payment_intent: request.charge_id,
    amount: '400',
    'metadata[refund_id]': request.refund_id,
    'metadata[attempt]': '1',
    'metadata[transaction_id]': request.transaction_id,
  });
});

test('a pending one is given; a failed one is refused, and another attempt is another refund', async ({
  server,
  payments,
  chargeOf,
}) => {
  assert.is((await payments.refund(await chargeOf('pm_card_pendingRefund'))).outcome, 'refunded');
  const failing = await chargeOf('pm_card_refundFail');
  assert.equal(await payments.refund(failing), refused('expired_or_canceled_card'));
  assert.equal(await payments.lookUpRefund(failing), refused('expired_or_canceled_card'));
  assert.equal(await payments.refund({ ...failing, attempt: 2 }), refused('expired_or_canceled_card'));
  assert.is(server.refunds.filter(({ metadata }) => metadata['refund_id'] === failing.refund_id).length, 2);
});

test('never more than was charged', async ({ server, payments, chargeOf }) => {
  const request = await chargeOf('pm_card_visa');
  await payments.refund({ ...request, amount: 700 });
  assert.equal(await payments.refund({ ...request, refund_id: 'other', amount: 301 }), refused('invalid_request'));
  assert.is((await payments.refund({ ...request, refund_id: 'rest', amount: 300 })).outcome, 'refunded');
  assert.equal(
    await payments.refund({ ...request, refund_id: 'third', amount: 1 }),
    refused('charge_already_refunded'),
  );
  assert.is(server.refunded(request.transaction_id), 1_000);
  assert.equal(
    await payments.refund({ ...request, refund_id: 'odd', charge_id: 'pi_unknown' }),
    refused('resource_missing'),
  );
});

test("an unknown outcome is found among the payment's refunds, on whatever page it stands", async ({
  server,
  payments,
  chargeOf,
}) => {
  const request = { ...(await chargeOf('pm_card_visa')), amount: 1 };
  for (const when of ['done', 'undone'] as const) {
    const one = { ...request, refund_id: `silent-${when}` };
    once(server, { kind: 'silence', when });
    assert.ok((await rejects(open(server, 150).refund(one), ProviderError, /did not answer/)).outcomeUnknown);
    assert.is((await payments.lookUpRefund(one)).outcome, when === 'done' ? 'refunded' : 'never');
    assert.is((await payments.refund(one)).outcome, 'refunded');
  }
  assert.is(server.refunded(request.transaction_id), 2);
  for (let n = 0; n < 100; n++) await payments.refund({ ...request, refund_id: `more-${n}` });
  assert.is((await payments.lookUpRefund({ ...request, refund_id: 'silent-done' })).outcome, 'refunded');
  assert.is((await payments.lookUpRefund({ ...request, refund_id: 'silent-done', attempt: 2 })).outcome, 'never');
});

test('counts what others gave back since, without failed refunds', async ({ server, payments, chargeOf }) => {
  const earlier = await chargeOf('pm_card_visa');
  server.refundByHand(earlier.charge_id, 100);
  const request = { ...earlier, started_at: new Date(now + 2 * 60_000).toISOString() };
  server.advance(3 * 60_000);
  assert.equal(await payments.lookUpRefund(request), { outcome: 'never' });
  server.refundByHand(request.charge_id, 30);
  server.refundByHand(request.charge_id, 20);
  await payments.refund({ ...request, refund_id: 'ours', amount: 7 });
  assert.equal(await payments.lookUpRefund(request), { outcome: 'never', others: 50 });
  const failing = await chargeOf('pm_card_refundFail');
  server.refundByHand(failing.charge_id, 30);
  assert.equal(await payments.lookUpRefund(failing), { outcome: 'never' });
});

test('finds the outcome of a failed request in the list', async ({ server, payments, chargeOf }) => {
  const done = await chargeOf('pm_card_visa');
  once(server, { kind: 'error', when: 'done' });
  assert.is((await payments.refund(done)).outcome, 'refunded');
  const undone = await chargeOf('pm_card_visa');
  once(server, { kind: 'error', when: 'undone' });
  assert.ok((await rejects(payments.refund(undone), ProviderError, /Stripe failed \(HTTP 500/)).outcomeUnknown);
  const other = await chargeOf('pm_card_visa');
  once(server, { kind: 'answer', answer: { status: 200, body: { object: 'login_page' } } });
  assert.ok((await rejects(payments.refund(other), ProviderError, /something else/)).outcomeUnknown);
  const busy = await chargeOf('pm_card_visa');
  once(server, { kind: 'limited', retryAfter: '2' });
  assert.is((await rejects(payments.refund(busy), RetryLaterError, /limits/)).afterMs, 2_000);
});

test('takes an answer of another shape for no proof about money', async ({ server, payments, chargeOf }) => {
  const request = { ...(await chargeOf('pm_card_visa')), amount: 400 };
  for (const body of [
    '{}',
    '[]',
    'null',
    '"ok"',
    '17',
    '{"object":"refund"}',
    '{"object":"refund","id":null,"status":"succeeded"}',
    '{"data":[]}',
    '{"object":"list","data":null}',
  ]) {
    server.fault = () => ({ kind: 'answer', answer: { status: 200, body } });
    assert.ok(
      (await rejects(payments.refund(request), ProviderError, /Stripe (?:failed|answered with something else)/))
        .outcomeUnknown,
      body,
    );
    assert.ok(
      (await rejects(payments.lookUpRefund(request), ProviderError, /Stripe (?:failed|answered with something else)/))
        .outcomeUnknown,
      body,
    );
  }
  server.fault = () => undefined;
  assert.is((await payments.refund(request)).outcome, 'refunded');
  assert.is(server.refunded(request.transaction_id), 400);
});

test("asks for no refund after 20 h, nor of another provider's charge", async ({ server, payments, chargeOf }) => {
  const request = await chargeOf('pm_card_visa');
  now += 20 * HOUR;
  await rejects(payments.refund(request), ProviderError, /too long ago/);
  assert.is(server.refunds.length, 0);
  await rejects(
    payments.refund({ ...request, provider: 'simulated', started_at: new Date(now).toISOString() }),
    RefusedError,
    /taken by simulated/,
  );
  await rejects(payments.lookUpRefund({ ...request, provider: 'simulated' }), RefusedError, /taken by simulated/);
});

test.run();
