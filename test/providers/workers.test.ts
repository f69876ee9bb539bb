import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedBus } from '../../src/adapters/embedded/bus/bus.js';
import { NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import { NOTIFICATION_REQUESTS } from '../../src/messages/notifications.js';
import { PAYMENT_REQUESTS } from '../../src/messages/payments.js';
import { MalformedMessageError, WORKERS_ALIVE } from '../../src/messages/workerRequest.js';
import { SUBJECTS } from '../support/providers/subjects.js';
import { startWorkers } from '../../src/providers/workers.js';
import { RetryLaterError } from '../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../src/providers/providerErrors.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';

const test = suite('workers');

const options = { timeoutMs: 2_000 };
const charge = {
  transaction_id: 't1',
  amount: 250,
  payment_reference: 'pm_card_visa',
  customer: null,
  started_at: '2026-01-01T00:00:00.000Z',
};
const refund = {
  refund_id: 'r1',
  attempt: 1,
  transaction_id: 't1',
  amount: 250,
  provider: 'simulated',
  charge_id: 'c',
  payment_reference: 'pm_card_visa',
  started_at: '2026-01-01T00:00:00.000Z',
};
const send = {
  gift_id: 'g1',
  transaction_id: 't1',
  buyer_id: 'ann',
  channel: 'sms',
  to: ['+447700900123'],
  sender_name: '',
  product_name: '',
  message: '',
  launch_url: '',
  locale: null,
};

test('answer on the bus and refuse malformed requests until they are closed', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'workers-'));
  const bus = await openEmbeddedBus({ dir, onError: () => undefined });
  const lines: { subject?: string }[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line) as object) });
  const workers = await startWorkers({ bus, records: memoryRecords(Date.now), logger });
  try {
    const refused: [subject: string, message: object][] = [
      [SUBJECTS.charge, {}],
      [SUBJECTS.charge, { ...charge, amount: -1 }],
      [SUBJECTS.charge, { ...charge, amount: '250' }],
      [SUBJECTS.charge, { ...charge, transaction_id: 'x'.repeat(1_000) }],
      [SUBJECTS.charge, []],
      [SUBJECTS.lookUpCharge, { transaction_id: 7, payment_id: null }],
      [SUBJECTS.lookUpCharge, { transaction_id: 't1', payment_id: '' }],
      [SUBJECTS.cancelCharge, { transaction_id: 't1', payment_id: 'p1' }],
      [SUBJECTS.paymentAction, { transaction_id: 't1' }],
      [SUBJECTS.findPayment, { payment_id: 7 }],
      [SUBJECTS.refund, { ...refund, amount: 0 }],
      [SUBJECTS.refund, { ...refund, attempt: 0 }],
      [SUBJECTS.lookUpRefund, { refund_id: 'r1' }],
      [SUBJECTS.send, { ...send, channel: 'pigeon' }],
      [SUBJECTS.send, { ...send, to: [] }],
      [SUBJECTS.lookUpNotification, { gift_id: 'g1' }],
    ];
    for (const [subject, message] of refused) {
      const reply = await bus.request<{ outcome: string; cause: string }>(subject, message, options);
      assert.is(reply.outcome, 'retry_later');
      assert.match(reply.cause, 'malformed');
    }
    assert.equal(
      lines.map(({ subject }) => subject),
      refused.map(([subject]) => subject),
    );
    assert.not.match(JSON.stringify(lines), /pigeon/);

    assert.is((await bus.request<{ outcome: string }>(SUBJECTS.charge, charge, options)).outcome, 'charged');
    assert.is(
      (
        await bus.request<{ outcome: string }>(
          SUBJECTS.lookUpCharge,
          { transaction_id: 't1', payment_id: null },
          options,
        )
      ).outcome,
      'charged',
    );
    assert.is(
      (
        await bus.request<{ outcome: string }>(
          SUBJECTS.cancelCharge,
          { transaction_id: 't1', payment_id: 'ch_simulated_t1', code: 'late' },
          options,
        )
      ).outcome,
      'charged',
    );
    assert.is(
      (
        await bus.request<{ outcome: string }>(
          SUBJECTS.paymentAction,
          { transaction_id: 't1', payment_id: 'ch_simulated_t1' },
          options,
        )
      ).outcome,
      'action',
    );
    assert.is(
      (await bus.request<{ outcome: string }>(SUBJECTS.findPayment, { payment_id: 'ch_simulated_t1' }, options))
        .outcome,
      'found',
    );
    assert.is((await bus.request<{ outcome: string }>(SUBJECTS.refund, refund, options)).outcome, 'refunded');
    assert.is(
      (
        await bus.request<{ outcome: string }>(
          SUBJECTS.lookUpRefund,
          { refund_id: 'r1', attempt: 2, provider: 'simulated', charge_id: 'c' },
          options,
        )
      ).outcome,
      'never',
    );
    assert.match(
      (await bus.request<{ cause: string }>(SUBJECTS.refund, { ...refund, provider: 'stripe' }, options)).cause,
      'taken by stripe',
    );
    assert.is((await bus.request<{ outcome: string }>(SUBJECTS.send, send, options)).outcome, 'sent');
    assert.is(
      (
        await bus.request<{ outcome: string }>(
          SUBJECTS.lookUpNotification,
          { gift_id: 'g1', started_at: '2026-01-01T00:00:00.000Z', channel: 'sms', to: [], launch_url: '' },
          options,
        )
      ).outcome,
      'sent',
    );

    assert.equal(await bus.request(WORKERS_ALIVE.subject, {}, options), {});
    await workers.close();
    for (const subject of [SUBJECTS.charge, WORKERS_ALIVE.subject])
      try {
        await bus.request(subject, charge, options);
        assert.unreachable();
      } catch (error) {
        assert.instance(error, NoRespondersError);
      }
  } finally {
    await bus.close();
    await rm(dir, { recursive: true });
  }
});

test('answer whatever comes, log it once, and map failures of providers', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'workers-'));
  const bus = await openEmbeddedBus({ dir, onError: () => undefined });
  const lines: { subject?: string }[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line) as object) });
  let trouble: Error = new Error('odd');
  const failing = async (): Promise<never> => Promise.reject(trouble);
  const workers = await startWorkers({
    bus,
    records: memoryRecords(Date.now),
    logger,
    payments: {
      charge: failing,
      lookUp: failing,
      cancel: failing,
      action: failing,
      find: failing,
      refund: failing,
      lookUpRefund: failing,
    },
    notifications: { send: failing, lookUp: failing },
  });
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.values(SUBJECTS)),
        fc.oneof(fc.object(), fc.array(fc.jsonValue())),
        async (subject, message) => {
          lines.length = 0;
          const reply = await bus.request<{ outcome: string }>(subject, message, options);
          assert.is(reply.outcome, 'retry_later');
          assert.equal(
            lines.map((line) => line.subject),
            [subject],
          );
        },
      ),
      { seed: 6, numRuns: 200 },
    );
    const reply = async (): Promise<unknown> =>
      bus.request<object>(SUBJECTS.charge, charge, options).catch((error: unknown) => error);
    assert.instance(await reply(), RemoteError);
    trouble = new ProviderError('silent', { outcomeUnknown: true });
    assert.instance(await reply(), RemoteError);
    trouble = new ProviderError('unreachable', { outcomeUnknown: false });
    assert.equal(await reply(), { outcome: 'retry_later', after_ms: 0, limited: false, cause: 'unreachable' });
    trouble = new RefusedError('no such card');
    assert.equal(await reply(), { outcome: 'impossible', cause: 'no such card' });
    lines.length = 0;
    trouble = new RetryLaterError('limited', 7, { limited: true });
    assert.equal(await reply(), { outcome: 'retry_later', after_ms: 7, limited: true, cause: 'limited' });
    assert.equal(lines, []);
  } finally {
    await workers.close();
    await bus.close();
    await rm(dir, { recursive: true });
  }
});

test('answers are checked too', () => {
  const charged = { outcome: 'charged', provider: 'p', charge_id: 'c', simulated: false };
  const refunded = { outcome: 'refunded', provider: 'p', refund_ref: 'r', simulated: false };
  assert.is(PAYMENT_REQUESTS.refund.reply(refunded), refunded);
  assert.equal(PAYMENT_REQUESTS.lookUpRefund.reply({ outcome: 'never' }), { outcome: 'never' });
  const sent = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
  assert.is(PAYMENT_REQUESTS.charge.reply(charged), charged);
  assert.equal(PAYMENT_REQUESTS.lookUpCharge.reply({ outcome: 'unknown' }), { outcome: 'unknown' });
  assert.equal(NOTIFICATION_REQUESTS.lookUpNotification.reply({ outcome: 'never' }), { outcome: 'never' });
  assert.is(NOTIFICATION_REQUESTS.lookUpNotification.reply(sent), sent);
  for (const [check, answer] of [
    [PAYMENT_REQUESTS.charge.reply, { outcome: 'unknown' }],
    [PAYMENT_REQUESTS.charge.reply, { ...charged, charge_id: undefined }],
    [PAYMENT_REQUESTS.charge.reply, { ...charged, amount: 2.5 }],
    [PAYMENT_REQUESTS.charge.reply, null],
    [PAYMENT_REQUESTS.refund.reply, { outcome: 'never' }],
    [PAYMENT_REQUESTS.refund.reply, { ...refunded, outcome: 'refused' }],
    [NOTIFICATION_REQUESTS.send.reply, { outcome: 'never' }],
    [NOTIFICATION_REQUESTS.send.reply, { ...sent, message_id: '' }],
    [NOTIFICATION_REQUESTS.lookUpNotification.reply, { outcome: 'perhaps' }],
  ] as const) {
    assert.throws(
      () => check(answer),
      (error: unknown) => error instanceof MalformedMessageError,
    );
  }
});

test.run();
