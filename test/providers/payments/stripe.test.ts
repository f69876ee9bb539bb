import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ChargeRequest } from '../../../src/messages/payments.js';
import type { PaymentProvider } from '../../../src/providers/payments/provider.js';
import type { RealProviderDeps } from '../../../src/providers/circuitBreaker.js';
import { stripePayments } from '../../../src/providers/payments/stripe.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../../src/providers/providerErrors.js';
import { withClockAhead } from '../../support/faults/clockAhead.js';
import { rejects } from '../../support/assertions/rejects.js';
import type { Requested, Fault } from '../../support/providers/standIn.js';
import { openStripeServer, type StripeServer } from '../../support/providers/stripeServer.js';
import { until } from '../../support/assertions/until.js';

const test = suite<{ server: StripeServer; payments: PaymentProvider }>('stripe');

const HOUR = 3_600_000;
let now = Date.now();
let lines: string[] = [];
const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
const open = (server: StripeServer, deps: Partial<RealProviderDeps> = {}): PaymentProvider =>
  stripePayments(
    { secretKey: server.secretKey, apiUrl: server.url },
    { logger, now: () => now, timeoutMs: 5_000, circuitBreaker: { failures: 50 }, ...deps },
  );

test.before.each(async (context) => {
  now = Date.now();
  lines = [];
  context.server = await openStripeServer();
  context.payments = open(context.server);
});
test.after.each((context) => context.server.close());

let serial = 0;
const ask = (method = 'pm_card_visa', more: Partial<ChargeRequest> = {}): ChargeRequest => ({
  transaction_id: `t-${++serial}`,
  amount: 250,
  payment_reference: method,
  customer: 'cus_ann',
  started_at: new Date(now).toISOString(),
  ...more,
});
const declined = (code: string): object => ({ outcome: 'declined', provider: 'stripe', code, simulated: false });
const isCreate = ({ method, path }: Requested): boolean => method === 'POST' && path === '/v1/payment_intents';
/** The next request of a kind fails, those after it don't. */
function once(server: StripeServer, fault: Fault, which: (requested: Requested) => boolean = isCreate): void {
  server.fault = (requested) => {
    if (!which(requested)) return undefined;
    server.fault = () => undefined;
    return fault;
  };
}

test('charges a stored card once, under the transaction as key and metadata', async ({ server, payments }) => {
  const request = ask();
  const [intent] = [await payments.charge(request)].map((reply) => ({ reply, made: server.intents[0] }));
  assert.equal(intent?.reply, {
    outcome: 'charged',
    provider: 'stripe',
    charge_id: intent?.made?.id,
    amount: 250,
    simulated: false,
  });
  const form = new URLSearchParams(server.requested[0]?.body);
  assert.equal(Object.fromEntries(form), {
    amount: '250',
    currency: 'gbp',
    payment_method: 'pm_card_visa',
    customer: 'cus_ann',
    'allowed_payment_method_types[0]': 'card',
    confirm: 'true',
    use_stripe_sdk: 'true',
    'metadata[transaction_id]': request.transaction_id,
  });
  assert.is(server.requested[0]?.headers['idempotency-key'], request.transaction_id);
  assert.equal(await payments.charge(request), intent?.reply);
  assert.is(server.charges(request.transaction_id), 1);
  assert.is(server.intents.length, 1);
});

test('charges without a customer, and asks nothing for a free purchase', async ({ server, payments }) => {
  await payments.charge(ask('pm_card_visa', { customer: null }));
  assert.not.match(server.requested[0]?.body ?? '', 'customer');
  const free = ask('pm_card_visa', { amount: 0 });
  assert.equal(await payments.charge(free), {
    outcome: 'charged',
    provider: 'stripe',
    charge_id: `free_${free.transaction_id}`,
    simulated: false,
  });
  assert.is(server.requested.length, 1);
});

test('answers each decline with its code after cancelling the intent', async ({ server, payments }) => {
  const codes: [method: string, code: string][] = [
    ['pm_card_chargeDeclined', 'generic_decline'],
    ['pm_card_visa_chargeDeclinedInsufficientFunds', 'insufficient_funds'],
    ['pm_card_chargeDeclinedLostCard', 'lost_card'],
    ['pm_card_chargeDeclinedStolenCard', 'stolen_card'],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card'],
    ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc'],
    ['pm_card_chargeDeclinedProcessingError', 'processing_error'],
    ['pm_card_chargeDeclinedVelocityLimitExceeded', 'card_velocity_exceeded'],
  ];
  for (const [method, code] of codes) {
    const request = ask(method);
    assert.equal(await payments.charge(request), declined(code), method);
    assert.is(server.intents.at(-1)?.status, 'canceled', method);
    // Again, from the kept answer, with the intent cancelled already.
    assert.equal(await payments.charge(request), declined(code), method);
    assert.is(server.charges(request.transaction_id), 0);
  }
  assert.is(server.intents.length, codes.length);
});

test('an intent that succeeds before it can be cancelled is charged', async ({ server, payments }) => {
  server.fault = ({ path }) => {
    const [intent] = server.intents;
    if (path.endsWith('/cancel') && intent !== undefined) intent.status = 'succeeded';
    return undefined;
  };
  assert.is((await payments.charge(ask('pm_card_chargeDeclined'))).outcome, 'charged');
});

test('a decline is not answered while its intent could still succeed', async ({ server, payments }) => {
  const request = ask('pm_card_chargeDeclined');
  once(server, { kind: 'silence', when: 'undone' }, ({ path }) => path.endsWith('/cancel'));
  await rejects(open(server, { timeoutMs: 300 }).charge(request), ProviderError, /did not answer/);
  assert.equal(await payments.charge(request), declined('generic_decline'));
  once(
    server,
    {
      kind: 'answer',
      answer: { status: 400, body: { error: { type: 'invalid_request_error', code: 'odd', message: 'odd' } } },
    },
    ({ path }) => path.endsWith('/cancel'),
  );
  const other = ask('pm_card_chargeDeclined');
  await rejects(payments.charge(other), RefusedError, /HTTP 400, odd/);
});

test('a refusal without an intent is a decline', async ({ server, payments }) => {
  once(server, {
    kind: 'answer',
    answer: { status: 402, body: { error: { type: 'card_error', code: 'card_declined', message: 'no' } } },
  });
  assert.equal(await payments.charge(ask()), declined('card_declined'));
  once(server, { kind: 'answer', answer: { status: 402, body: { error: { type: 'card_error', message: 'no' } } } });
  assert.equal(await payments.charge(ask()), declined('generic_decline'));
});

for (const fault of [
  { kind: 'silence', when: 'done' },
  { kind: 'silence', when: 'undone' },
  { kind: 'lost', when: 'done' },
  { kind: 'lost', when: 'undone' },
] as const) {
  test(`${fault.kind}, ${fault.when}: unknown, and charged once by the repeat`, async ({ server, payments }) => {
    const request = ask();
    let failures = 0;
    // The library itself repeats a broken connection once, under the same key.
    server.fault = (requested) => (isCreate(requested) && failures++ < 2 ? fault : undefined);
    const error = await rejects(open(server, { timeoutMs: 150 }).charge(request), ProviderError, /did not answer/);
    assert.ok(error.outcomeUnknown);
    server.fault = () => undefined;
    assert.is((await payments.charge(request)).outcome, 'charged');
    assert.is(server.charges(request.transaction_id), 1);
  });
}

test('fails where the provider does not listen', async ({ server }) => {
  const payments = stripePayments(
    { secretKey: server.secretKey, apiUrl: 'http://127.0.0.1:2' },
    { logger, now: () => now },
  );
  await rejects(payments.charge(ask()), ProviderError, /did not answer/);
});

test('a failure of its own, repeated under its key for a day, is looked up by metadata', async ({
  server,
  payments,
}) => {
  const request = ask();
  once(server, { kind: 'error', when: 'done' });
  server.searchable = false;
  const error = await rejects(payments.charge(request), ProviderError, /Stripe failed \(HTTP 500/);
  assert.ok(error.outcomeUnknown);
  server.searchable = true;
  assert.is((await payments.charge(request)).outcome, 'charged');
  assert.is(server.charges(request.transaction_id), 1);
  const lost = ask('pm_card_chargeDeclined');
  once(server, { kind: 'error', when: 'done' });
  assert.equal(await payments.charge(lost), declined('generic_decline'));
  assert.is(server.intents.at(-1)?.status, 'canceled');
});

test('the same key with another request is looked up, never made anew', async ({ server, payments }) => {
  const request = ask();
  await payments.charge(request);
  const changed = { ...request, customer: 'cus_other' };
  assert.is((await payments.charge(changed)).outcome, 'charged');
  assert.is(
    ((await payments.charge({ ...request, amount: 300 })) as { amount?: number }).amount,
    250,
    'what was taken, not what is asked for',
  );
  server.searchable = false;
  const alone = open(server, { circuitBreaker: { failures: 1 } });
  for (let n = 0; n < 2; n++) await rejects(alone.charge(changed), Error, /by another request/);
  assert.is(server.charges(request.transaction_id), 1);
});

test('pauses all calls for as long as a rate limit says', async ({ server, payments }) => {
  once(server, { kind: 'limited', retryAfter: '7' });
  assert.is(
    (await rejects(payments.charge(ask()), RetryLaterError, /limits our requests \(HTTP 429, rate_limit/)).afterMs,
    7_000,
  );
  const requested = server.requested.length;
  const error = await rejects(payments.charge(ask()), RetryLaterError, /asks for a pause/);
  assert.ok(error.afterMs <= 7_000 && error.afterMs > 6_000);
  assert.is(server.requested.length, requested);
  now += 7_001;
  assert.is((await payments.charge(ask())).outcome, 'charged');
  once(server, { kind: 'limited' });
  assert.is((await rejects(payments.charge(ask()), RetryLaterError, /limits/)).afterMs, 1_000);
});

test('takes no charge to where a redirect leads, and looks for it', async ({ server, payments }) => {
  const location = `${server.url}/elsewhere`;
  for (const status of [302, 307]) {
    once(server, { kind: 'answer', answer: { status, body: '', headers: { location } } });
    assert.ok((await rejects(payments.charge(ask()), ProviderError, /Stripe failed/)).outcomeUnknown);
  }
  assert.not(server.requested.some(({ path }) => path === '/elsewhere'));
});

test('a request that is still running elsewhere is asked again', async ({ server, payments }) => {
  once(server, {
    kind: 'answer',
    answer: {
      status: 409,
      body: { error: { type: 'invalid_request_error', code: 'idempotency_key_in_use', message: 'in use' } },
    },
  });
  await rejects(payments.charge(ask()), RetryLaterError, /busy with this very request/);
});

test('a payment that is being processed is asked again', async ({ server, payments }) => {
  const request = ask('pm_card_processing');
  await rejects(payments.charge(request), RetryLaterError, /processing/);
  // Stripe repeats its first answer under the key; the intent itself has gone on.
  for (const intent of server.intents) intent.status = 'succeeded';
  assert.is((await payments.charge(request)).outcome, 'charged');
  assert.is(server.intents.length, 1);
  const [intent] = server.intents;
  if (intent !== undefined) intent.status = 'succeeded';
  assert.is((await payments.lookUp({ ...request, payment_id: null })).outcome, 'charged');
});

test('declines what Stripe will never accept, unless an earlier request was paid', async ({ server, payments }) => {
  const never: [code: string, request: ChargeRequest][] = [
    ['resource_missing', ask('card-of-nobody')],
    ['amount_too_small', ask('pm_card_visa', { amount: 20 })],
    ['amount_too_large', ask('pm_card_visa', { amount: 100_000_000 })],
    ['invalid_request_error', ask('pm_card_detached')],
  ];
  for (const [code, request] of never) {
    assert.equal(await payments.charge(request), declined(code));
    assert.is(server.requested.at(-1)?.path, '/v1/payment_intents/search');
  }
  assert.is(server.intents.length, 0);
  assert.not.match(lines.join(), /cus_ann|card-of-nobody/);
  assert.match(lines.join(), /"code":"resource_missing"/);
  const made = ask('pm_card_visa');
  await payments.charge(made);
  once(server, {
    kind: 'answer',
    answer: {
      status: 400,
      body: { error: { type: 'invalid_request_error', message: 'It was detached from a Customer.' } },
    },
  });
  assert.is((await payments.charge(made)).outcome, 'charged', 'the answer to the first request was lost');
  assert.is(server.charges(made.transaction_id), 1);
});

test('refuses what a person can mend, without anything personal', async ({ server, payments }) => {
  const wrong: [error: object, status: number][] = [
    [{ code: 'parameter_unknown', param: 'use_stripe_sdk' }, 400],
    [{ code: 'parameter_unknown', param: 'customer' }, 400],
    [{ code: 'livemode_mismatch' }, 400],
    [{ code: 'odd', param: 'metadata' }, 400],
    [{}, 404],
    [{ param: 'confirm' }, 400],
  ];
  for (const [error, status] of wrong) {
    once(server, {
      kind: 'answer',
      answer: { status, body: { error: { type: 'invalid_request_error', message: 'cus_ann', ...error } } },
    });
    const refused = await rejects(payments.charge(ask()), RefusedError, /Stripe refuses the request/);
    assert.not.match(refused.message, /cus_ann/);
  }
});

test('fails on a refused key, which may be mended and is never shown', async ({ server }) => {
  const payments = stripePayments(
    { secretKey: 'sk_test_hunter2', apiUrl: server.url },
    { logger, now: () => now, circuitBreaker: { failures: 1 } },
  );
  const error = await rejects(payments.charge(ask()), ProviderError, /refuses our key \(HTTP 401/);
  assert.not(error.outcomeUnknown);
  assert.not.match(`${error.stack}${lines.join()}`, /hunter2/);
});

test('stops calling a failing provider, and calls it again after a while', ({ server }) =>
  withClockAhead(async (advance) => {
    const payments = open(server, { circuitBreaker: { failures: 3, openMs: 600_000 } });
    server.fault = () => ({ kind: 'error', when: 'undone' });
    for (let n = 0; n < 3; n++) await payments.charge(ask()).catch(() => undefined);
    const requested = server.requested.length;
    await rejects(payments.charge(ask()), RetryLaterError, /is not called/);
    assert.is(server.requested.length, requested);
    assert.match(lines.join(), 'a provider fails');
    server.fault = () => undefined;
    advance(600_000);
    assert.is((await payments.charge(ask())).outcome, 'charged');
    assert.match(lines.join(), 'a provider works again');
  }));

test('looks up by metadata: charged, declined and cancelled, unknown', async ({ server, payments }) => {
  const [good, bad] = [ask(), ask('pm_card_chargeDeclined')];
  const reply = await payments.charge(good);
  assert.equal(await payments.lookUp({ ...good, payment_id: null }), reply);
  once(server, { kind: 'silence', when: 'undone' }, ({ path }) => path.endsWith('/cancel'));
  await open(server, { timeoutMs: 300 })
    .charge(bad)
    .catch(() => undefined);
  assert.is(server.intents.at(-1)?.status, 'requires_payment_method');
  assert.equal(await payments.lookUp({ ...bad, payment_id: null }), declined('generic_decline'));
  assert.is(server.intents.at(-1)?.status, 'canceled');
  assert.equal(await payments.lookUp({ ...bad, payment_id: null }), declined('generic_decline'));
  assert.equal(await payments.lookUp({ ...ask(), payment_id: null }), { outcome: 'unknown' });
  await rejects(
    payments.lookUp({ transaction_id: "x' OR status:'succeeded", payment_id: null }),
    RefusedError,
    /searched/,
  );
});

test('finds the payment that took the money, else a payment that still may', async ({ server, payments }) => {
  const request = ask();
  await payments.charge(request);
  const [paid] = server.intents;
  assert.ok(paid);
  const other = (status: typeof paid.status): typeof paid => ({
    ...paid,
    id: `pi_${status}`,
    amount_received: 0,
    status,
  });
  server.intents.unshift(other('canceled'), other('requires_payment_method'));
  server.intents.push(other('canceled'));
  const found = await payments.lookUp({ ...request, payment_id: null });
  assert.is(found.outcome === 'charged' && found.charge_id, paid.id);
  server.intents.splice(1, 2, other('processing'));
  await rejects(payments.lookUp({ ...request, payment_id: null }), RetryLaterError, /processing/);
});

test('never charges after Stripe may have forgotten the key', async ({ server, payments }) => {
  const request = ask();
  await payments.charge(request);
  now += 25 * HOUR;
  server.advance(25 * HOUR);
  await rejects(payments.charge(request), ProviderError, /too long ago/);
  await rejects(payments.charge({ ...request, started_at: 'some day' }), ProviderError, /too long ago/);
  assert.is(server.intents.length, 1);
  assert.is((await payments.lookUp({ ...request, payment_id: null })).outcome, 'charged');
});

test('answers that come slowly or twice', async ({ server, payments }) => {
  once(server, { kind: 'slow', ms: 60 });
  assert.is((await payments.charge(ask())).outcome, 'charged');
  once(server, { kind: 'twice' });
  assert.is((await payments.charge(ask())).outcome, 'charged');
  assert.is((await payments.charge(ask())).outcome, 'charged');
  assert.is(server.intents.length, 3);
});

test('an answer that is no JSON is a failure of its own', async ({ server, payments }) => {
  const request = ask();
  once(server, { kind: 'answer', answer: { status: 502, body: '<html>Bad Gateway</html>' } });
  await rejects(payments.charge(request), ProviderError, /Stripe failed/);
  once(server, { kind: 'answer', answer: { status: 200, body: {} } });
  await rejects(payments.charge(request), ProviderError, /something else/);
  assert.is((await payments.charge(request)).outcome, 'charged');
});

/** JSON that something on the way may answer with in Stripe's place. */
const FOREIGN = [
  '{}',
  '[]',
  'null',
  '"ok"',
  '17',
  'true',
  '{"object":"payment_intent"}',
  '{"object":"payment_intent","id":"pi_other","status":"succeeded","metadata":{}}',
  '{"object":"list","data":null}',
];
const foreign = (body: string): Fault => ({ kind: 'answer', answer: { status: 200, body } });

test('JSON of another shape in place of an answer moves no money in the log, and ends no process', async ({
  server,
}) => {
  for (const body of FOREIGN) {
    const payments = open(server, { circuitBreaker: { failures: 1_000 } });
    const request = ask();
    server.fault = () => foreign(body);
    await rejects(payments.charge(request), ProviderError, /Stripe (?:failed|answered with something else)/);
    await rejects(
      payments.lookUp({ ...request, payment_id: null }),
      ProviderError,
      /Stripe (?:failed|answered with something else)/,
    );
    await rejects(
      payments.lookUp({ ...request, payment_id: 'pi_asked' }),
      ProviderError,
      /Stripe (?:failed|answered with something else)/,
    );
    await rejects(
      payments.action({ ...request, payment_id: 'pi_asked' }),
      ProviderError,
      /Stripe (?:failed|answered with something else)/,
    );
    await rejects(
      payments.find({ payment_id: 'pi_asked' }),
      ProviderError,
      /Stripe (?:failed|answered with something else)/,
    );
    server.fault = () => undefined;
    assert.is((await payments.charge(request)).outcome, 'charged', body);
    assert.is(server.charges(request.transaction_id), 1);
  }
});

test('declines a payment only once Stripe says that it is cancelled', async ({ server }) => {
  for (const body of FOREIGN) {
    const payments = open(server, { circuitBreaker: { failures: 1_000 } });
    const request = ask('pm_card_authenticationRequired');
    const { payment_id } = (await payments.charge(request)) as { payment_id: string };
    const late = { transaction_id: request.transaction_id, payment_id, code: 'too_late' };
    server.fault = ({ path }) => (path.endsWith('/cancel') ? foreign(body) : undefined);
    await rejects(payments.cancel(late), ProviderError, /Stripe (?:failed|answered with something else)/);
    const declining = ask('pm_card_chargeDeclined');
    await rejects(payments.charge(declining), ProviderError, /Stripe (?:failed|answered with something else)/);
    server.fault = () => undefined;
    assert.equal(await payments.cancel(late), declined('too_late'));
    assert.equal(await payments.charge(declining), declined('generic_decline'));
    assert.equal(
      server.intents.slice(-2).map(({ status }) => status),
      ['canceled', 'canceled'],
      body,
    );
  }
  const payments = open(server);
  const { payment_id } = (await payments.charge(ask('pm_card_authenticationRequired'))) as { payment_id: string };
  const waiting = server.intents.at(-1) as StripeServer['intents'][number];
  once(server, { kind: 'answer', answer: { status: 200, body: { ...waiting } } }, ({ path }) =>
    path.endsWith('/cancel'),
  );
  await rejects(
    payments.cancel({ transaction_id: 't', payment_id, code: 'too_late' }),
    ProviderError,
    /did not cancel/,
  );
});

test('refuses money of another currency', async ({ server, payments }) => {
  const request = ask();
  await payments.charge(request);
  for (const intent of server.intents) intent.currency = 'eur';
  await rejects(
    payments.lookUp({ ...request, payment_id: null }),
    RefusedError,
    /took 250 of the smallest unit of eur .* give them back there/,
  );
});

test('waits no longer for an answer that comes byte by byte than for none', async ({ server }) => {
  const payments = open(server, { timeoutMs: 300 });
  const request = ask();
  for (const part of [{}, { part: 'head' }] as const) {
    once(server, { kind: 'dripping', ms: 20, ...part });
    const error = await rejects(payments.charge(request), ProviderError, /did not answer/);
    assert.ok(error.outcomeUnknown);
    if (!('part' in part))
      await until(async () => (await server.connections()) === 0, 'its connection to be given up with it');
  }
  assert.is((await payments.charge(request)).outcome, 'charged');
  assert.is(server.charges(request.transaction_id), 1);
});

test('waits for authentication, and gives the secret only when asked', async ({ server, payments }) => {
  const request = ask('pm_card_authenticationRequired');
  const reply = await payments.charge(request);
  const [intent] = server.intents;
  const payment_id = intent?.id ?? '';
  assert.equal(reply, {
    outcome: 'authentication',
    provider: 'stripe',
    payment_id,
    action: 'use_stripe_sdk',
    simulated: false,
  });
  assert.equal(await payments.charge(request), reply, 'asked again under the same key');
  assert.equal(await payments.lookUp({ ...request, payment_id }), reply);
  assert.equal(await payments.lookUp({ ...request, payment_id: null }), reply, 'found by its metadata');
  assert.equal(await payments.action({ ...request, payment_id }), {
    outcome: 'action',
    client_secret: intent?.client_secret,
    waiting: true,
  });
  assert.not.match(lines.join(), intent?.client_secret ?? '?');
  server.authenticate(payment_id, true);
  // By its own name, since search lags behind.
  server.searchable = false;
  assert.equal(await payments.lookUp({ ...request, payment_id }), {
    outcome: 'charged',
    provider: 'stripe',
    charge_id: payment_id,
    amount: 250,
    simulated: false,
  });
  assert.is(((await payments.action({ ...request, payment_id })) as { waiting: boolean }).waiting, false);
  assert.is(server.charges(request.transaction_id), 1);
});

test('cancels, then declines, after a failed authentication or a refused card', async ({ server, payments }) => {
  for (const [method, proves, code] of [
    ['pm_card_authenticationRequired', false, 'payment_intent_authentication_failure'],
    ['pm_card_authenticationRequiredChargeDeclinedInsufficientFunds', true, 'insufficient_funds'],
  ] as const) {
    const request = ask(method);
    const reply = (await payments.charge(request)) as { payment_id: string };
    const intent = server.authenticate(reply.payment_id, proves);
    assert.equal(await payments.lookUp({ ...request, payment_id: intent.id }), declined(code));
    assert.is(intent.status, 'canceled');
  }
});

test('a payment that waits is cancelled, unless it has succeeded; it never succeeds after that', async ({
  server,
  payments,
}) => {
  const wait = async (): Promise<{ transaction_id: string; payment_id: string; code: string }> => {
    const request = ask('pm_card_authenticationRequired');
    const { payment_id } = (await payments.charge(request)) as { payment_id: string };
    return { transaction_id: request.transaction_id, payment_id, code: 'too_late' };
  };
  const late = await wait();
  assert.equal(await payments.cancel(late), declined('too_late'));
  assert.equal(await payments.cancel(late), declined('too_late'), 'again');
  assert.throws(() => server.authenticate(late.payment_id, true));
  const quick = await wait();
  server.authenticate(quick.payment_id, true);
  assert.equal(await payments.cancel(quick), {
    outcome: 'charged',
    provider: 'stripe',
    charge_id: quick.payment_id,
    amount: 250,
    simulated: false,
  });
  const slow = await wait();
  for (const intent of server.intents) if (intent.id === slow.payment_id) intent.status = 'processing';
  await rejects(payments.cancel(slow), RetryLaterError, /processing/);
  await rejects(payments.cancel({ ...slow, payment_id: 'pi_nobody' }), RefusedError, /does not know/);
});

test('waits for a payment that is authenticated while it is cancelled', async ({ server, payments }) => {
  const request = ask('pm_card_authenticationRequired');
  const { payment_id } = (await payments.charge(request)) as { payment_id: string };
  const [intent] = server.intents;
  assert.ok(intent);
  server.fault = ({ path }) => {
    if (!path.endsWith('/cancel')) return undefined;
    intent.status = 'processing';
    return {
      kind: 'answer',
      answer: {
        status: 400,
        body: {
          error: {
            type: 'invalid_request_error',
            code: 'payment_intent_unexpected_state',
            message: 'it has a status of processing',
          },
        },
      },
    };
  };
  const cancel = { transaction_id: request.transaction_id, payment_id, code: 'authentication_required' };
  await rejects(payments.cancel(cancel), RetryLaterError, /processing/);
  Object.assign(intent, { status: 'succeeded', amount_received: intent.amount });
  assert.is((await payments.cancel(cancel)).outcome, 'charged');
});

test("finds a payment's transaction by its metadata", async ({ server, payments }) => {
  const request = ask();
  await payments.charge(request);
  assert.equal(await payments.find({ payment_id: server.intents[0]?.id ?? '' }), {
    outcome: 'found',
    transaction_id: request.transaction_id,
  });
  assert.equal(await payments.find({ payment_id: 'pi_nobody' }), { outcome: 'unknown' });
  assert.equal(await payments.action({ transaction_id: 't', payment_id: 'pi_nobody' }), { outcome: 'unknown' });
  assert.equal(await payments.lookUp({ transaction_id: 't', payment_id: 'pi_nobody' }), { outcome: 'unknown' });
  server.intents.push({ ...(server.intents[0] as StripeServer['intents'][number]), id: 'pi_shop', metadata: {} });
  assert.equal(
    await payments.find({ payment_id: 'pi_shop' }),
    { outcome: 'unknown' },
    'another system of the same account',
  );
  once(server, { kind: 'error', when: 'undone' }, ({ method }) => method === 'GET');
  await rejects(payments.find({ payment_id: 'pi_shop' }), ProviderError, /Stripe failed/);
});

test.run();
