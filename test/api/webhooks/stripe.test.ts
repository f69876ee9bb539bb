import assert from 'node:assert/strict';
import pino from 'pino';
import { suite } from 'uvu';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import type { Answer, Call } from '../../../src/api/pipeline/route.js';
import { webhookRoutes } from '../../../src/api/webhooks/stripe.js';
import { paymentQuestions } from '../../../src/commands/paymentAction.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError } from '../../../src/ports/bus.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { stripeEvents } from '../../../src/providers/payments/stripeEvents.js';
import { SignatureError } from '../../../src/providers/signature.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import { startService } from '../../support/service/service.js';
import { dispute, signed, stripeMessage, succeeded } from '../../support/providers/stripeWebhooks.js';

const test = suite('the webhook route');
const SECRET = 'whsec_test';

interface Setup {
  readonly events: MemoryEvents;
  readonly lines: string[];
  post(message: object | string, options?: { readonly secret?: string; readonly address?: string }): Promise<Answer>;
}

function open(
  options: {
    readonly read?: Parameters<typeof webhookRoutes>[0]['read'];
    readonly transactionOf?: () => Promise<string | undefined>;
  } = {},
): Setup {
  const events = memoryEvents();
  const lines: string[] = [];
  const [route] = webhookRoutes({
    events,
    read: options.read ?? stripeEvents(SECRET, 'simulated'),
    questions: { transactionOf: options.transactionOf ?? (async () => undefined), refundedByOthers: async () => 0 },
    simulated: true,
    logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    now: () => '2026-03-01T09:00:00.000Z',
  });
  return {
    events,
    lines,
    async post(message, { secret = SECRET, address = '10.0.0.1' } = {}) {
      const { body, headers } = signed(message, secret);
      const call = {
        bytes: Buffer.from(body),
        requestId: 'request',
        address,
        header: (name: string) => headers[name],
      } as Call;
      if (route?.handle === undefined) throw new Error('no route');
      return { status: 200, ...(await route.handle(call)) };
    },
  };
}
const codeOf = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'answered',
    (error: unknown) => (error instanceof HttpError ? error.code : (error as Error).name),
  );
const given = (events: MemoryEvents): void =>
  events.given('transaction-t1', {
    type: 'GiftsPurchased',
    data: {
      transaction_id: 't1',
      seed: '00',
      buyer_id: 'ann',
      product_id: 'p',
      brand_id: 'b',
      product_name: 'P',
      sale_price: 100,
      total: 100,
      payment_reference: 'pm',
      expires_on: '2030-01-01',
      message: '',
      receivers: [{}],
    },
  });
const paid = succeeded({ id: 'pi_1', amount: 100, metadata: { transaction_id: 't1' } }, 'evt_1');

test("takes a signature that can't be compared for forged, not for a malformed event", () => {
  const read = stripeEvents(SECRET, 'simulated');
  const now = Math.floor(Date.now() / 1000);
  for (const signatures of [
    'v1=',
    `v1=${'a'.repeat(63)}é`,
    `v1=${'é'.repeat(64)}`,
    'v1=a',
    'v0=a',
    `v1=${'a'.repeat(64)}`,
  ]) {
    for (const time of [`t=${now}`, 't=', 't=x'])
      assert.throws(() => read(Buffer.from('{}'), `${time},${signatures}`), SignatureError, `${time},${signatures}`);
  }
  for (const header of ['', ',', '=', 't', 'v1'])
    assert.throws(() => read(Buffer.from('{}'), header), SignatureError, header);
  const { body, headers } = signed('no JSON', SECRET);
  assert.throws(() => read(Buffer.from(body), headers['stripe-signature'] ?? ''), /no JSON/);
});

test('records the provider as the caller, and simulated payments as such', async () => {
  const { events, post } = open();
  given(events);
  assert.deepEqual((await post(paid)).body, { received: true, outcome: 'recorded' });
  const noted = events.log.at(-1);
  assert.deepEqual(
    [noted?.type, noted?.data],
    ['PaymentCharged', { amount: 100, provider: 'simulated', charge_id: 'pi_1' }],
  );
  assert.deepEqual(noted?.metadata, {
    commandId: 'stripe-evt_1',
    correlationId: 'request',
    requestId: 'request',
    by: { user: 'system:payment-provider' },
    simulated: true,
  });
  assert.deepEqual((await post(paid)).body, { received: true, outcome: 'known' });
});

test('asks to be sent again what finds the event store or the provider out of reach', async () => {
  const { events, post } = open();
  given(events);
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  await assert.rejects(post(paid), UnavailableError);
  const asking = open({ transactionOf: async () => Promise.reject(new UnavailableError('nobody answers')) });
  await assert.rejects(
    asking.post(
      dispute('created', { id: 'pi_1', amount: 1, latest_charge: 'ch' }, { disputeId: 'dp', status: 'needs_response' }),
    ),
    UnavailableError,
  );
});

test('a dispute whose metadata name the transaction needs no look-up', async () => {
  const { events, post } = open({ transactionOf: async () => Promise.reject(new Error('asked')) });
  given(events);
  const message = stripeMessage('charge.dispute.created', {
    id: 'dp',
    amount: 100,
    payment_intent: 'pi',
    reason: 'general',
    status: 'needs_response',
    metadata: { transaction_id: 't1' },
  });
  assert.deepEqual((await post(message)).body, { received: true, outcome: 'recorded' });
  assert.deepEqual(events.log.at(-1)?.data, {
    provider: 'simulated',
    dispute_id: 'dp',
    amount: 100,
    reason: 'general',
  });
});

test('refuses too many forgeries with 429; good ones of the same address go on', async () => {
  const { events, lines, post } = open();
  given(events);
  for (let n = 0; n < 100; n++) assert.equal(await codeOf(post(paid, { secret: 'whsec_other' })), 'invalid_signature');
  assert.equal(await codeOf(post(paid, { secret: 'whsec_other' })), 'too_many_requests');
  const told = lines.length;
  const error = await post(paid, { secret: 'whsec_other' }).catch((one: unknown) => one);
  assert.match((error as HttpError).headers['Retry-After'] ?? '', /^\d+$/);
  assert.equal(lines.length, told);
  assert.equal(await codeOf(post(paid, { secret: 'whsec_other', address: '10.0.0.2' })), 'invalid_signature');
  assert.equal((await post(paid)).status, 200);
});

test('what is no fault of the sender is not taken for one', async () => {
  const { post } = open({
    read: () => {
      throw new TypeError('odd');
    },
  });
  assert.equal(await codeOf(post(paid)), 'TypeError');
});

test('without a secret there is no such route', async () => {
  const service = await startService();
  try {
    const { body, headers } = signed(paid, SECRET);
    const reply = await service.ask('POST', '/webhooks/stripe', { body, headers });
    assert.deepEqual([reply.status, reply.json], [404, { error: 'Not found.' }]);
  } finally {
    await service.close();
  }
});

test('asks the provider once for all who look at one payment at a time', async () => {
  const requested: {
    readonly payload: object;
    readonly answer: (reply: object) => void;
    readonly fail: (error: Error) => void;
  }[] = [];
  const questions = paymentQuestions({
    request: async (_: string, payload: object) =>
      new Promise<object>((answer, fail) => void requested.push({ payload, answer, fail })),
  } as unknown as Bus);
  const looks = Array.from({ length: 50 }, () => questions.action('t', 'p'));
  const other = questions.action('t2', 'p');
  assert.deepEqual(
    requested.map(({ payload }) => payload),
    [
      { transaction_id: 't', payment_id: 'p' },
      { transaction_id: 't2', payment_id: 'p' },
    ],
  );
  requested[1]?.answer({ outcome: 'unknown' });
  assert.equal(await other, undefined);
  requested[0]?.answer({ outcome: 'action', client_secret: 's', waiting: true });
  for (const look of looks) assert.deepEqual(await look, { clientSecret: 's', waiting: true });

  const failing = [questions.action('t', 'p'), questions.action('t', 'p')];
  assert.equal(requested.length, 3);
  requested[2]?.fail(new NoRespondersError('x'));
  for (const one of failing) await assert.rejects(one, UnavailableError);
  const anew = questions.action('t', 'p');
  requested[3]?.answer({ outcome: 'action', client_secret: 's', waiting: false });
  assert.deepEqual(await anew, { clientSecret: 's', waiting: false });
});

test('asking the provider: what it says, or that it cannot be asked', async () => {
  const answering = (answer: () => Promise<object>): ReturnType<typeof paymentQuestions> =>
    paymentQuestions({ request: answer } as unknown as Bus);
  const found = answering(async () => ({ outcome: 'action', client_secret: 's', waiting: true }));
  assert.deepEqual(await found.action('t', 'p'), { clientSecret: 's', waiting: true });
  assert.equal(await answering(async () => ({ outcome: 'found', transaction_id: 't' })).transactionOf('p'), 't');
  const others = async (reply: object): Promise<number> => answering(async () => reply).refundedByOthers('stripe', 'p');
  assert.deepEqual(
    [
      await others({ outcome: 'never', others: 5 }),
      await others({ outcome: 'never' }),
      await others({ outcome: 'refused', provider: 'stripe', code: 'x', simulated: false }),
    ],
    [5, 0, 0],
  );
  const unknown = answering(async () => ({ outcome: 'unknown' }));
  assert.deepEqual([await unknown.action('t', 'p'), await unknown.transactionOf('p')], [undefined, undefined]);
  for (const trouble of [
    { outcome: 'retry_later', after_ms: 1, limited: false, cause: 'busy' },
    { outcome: 'impossible', cause: 'no' },
  ]) {
    await assert.rejects(answering(async () => trouble).transactionOf('p'), UnavailableError);
  }
  for (const error of [new DeadlineError('s', 1), new NoRespondersError('s'), new RemoteError('odd')]) {
    await assert.rejects(answering(async () => Promise.reject(error)).action('t', 'p'), UnavailableError);
  }
  await assert.rejects(answering(async () => Promise.reject(new TypeError('odd'))).action('t', 'p'), TypeError);
});

test.run();
