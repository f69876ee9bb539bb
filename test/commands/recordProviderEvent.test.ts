import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import { paymentQuestions } from '../../src/commands/paymentAction.js';
import { recordProviderEvent } from '../../src/commands/recordProviderEvent.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import type { ProviderEvent } from '../../src/domain/purchase/providerEvent.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { rejects } from '../support/assertions/rejects.js';
import { SUBJECTS } from '../support/providers/subjects.js';

const test = suite('commands/provider events');
const context = (commandId: string): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'system:payment-provider' },
  now: '2026-05-04T12:00:00.000Z',
});
const refunded = (total: number): ProviderEvent => ({ provider: 'p', kind: 'refunded', charge_id: 'ch_1', total });

/** A purchase that is paid for. */
function charged(...then: readonly DomainEvent[]): MemoryEvents {
  const events = memoryEvents();
  events.given(
    'transaction-t1',
    { type: 'GiftsPurchased', data: { transaction_id: 't1', seed: 'ab'.repeat(32), total: 500, receivers: [{}, {}] } },
    { type: 'ChargeStarted', data: { amount: 500, kind: 'card', prepaid: false } },
    { type: 'PaymentCharged', data: { amount: 500, provider: 'p', charge_id: 'ch_1' } },
    ...then,
  );
  return events;
}
const started = { refund_id: 'r1', attempt: 1, amount: 250, provider: 'p', charge_id: 'ch_1', gift_ids: [], kept: {} };
const requested = { refund_id: 'r1', gift_ids: [], voided: false, reason: 'x' };
const OWN = [
  { type: 'RefundRequested', data: requested },
  { type: 'RefundStarted', data: started },
] as const;
/** Answers that external refunds are 100 pence. @returns how often it was asked */
const ledger = (): { refundedByOthers(provider: string, charge: string): Promise<number>; asked: string[] } => {
  const asked: string[] = [];
  return { asked, refundedByOthers: async (...about) => (asked.push(about.join()), 100) };
};

test('records each provider event once, and none of a transaction that does not exist', async () => {
  const events = charged();
  assert.equal(await recordProviderEvent(events, 't1', refunded(200), context('a')), 'recorded');
  for (const command of ['a', 'b'])
    assert.equal(await recordProviderEvent(events, 't1', refunded(200), context(command)), 'known');
  assert.equal(await recordProviderEvent(events, 't2', refunded(200), context('c')), 'foreign');
  assert.deepEqual(
    events.log.slice(3).map(({ type, stream }) => [type, stream]),
    [['RefundedAtProvider', 'transaction-t1']],
  );
});

test('an outage is no foreign transaction', async () => {
  const events = { ...charged(), read: () => Promise.reject(new UnavailableError('down')) };
  await rejects(recordProviderEvent(events, 't1', refunded(200), context('a')), UnavailableError, /down/);
});

test('asks the provider only where the total may hold a refund of ours that has failed', async () => {
  const sure = ledger();
  assert.equal(await recordProviderEvent(charged(), 't1', refunded(200), context('a'), sure), 'recorded');
  assert.deepEqual(sure.asked, []);

  const settled = { type: 'RefundRefused', data: { refund_id: 'r1', attempt: 1, provider: 'p', code: 'x' } };
  const [events, unsure] = [charged(...OWN, settled), ledger()];
  assert.equal(await recordProviderEvent(events, 't1', refunded(350), context('a'), unsure), 'recorded');
  assert.deepEqual(unsure.asked, ['p,ch_1']);
  assert.deepEqual(events.log.at(-1)?.data, { provider: 'p', charge_id: 'ch_1', amount: 100, total: 100 });

  const unasked = charged(...OWN, settled);
  assert.equal(await recordProviderEvent(unasked, 't1', refunded(350), context('a')), 'recorded', 'without a ledger');
});

test('asks for the external refunds of a charge whose accepted refund has failed', async () => {
  const events = charged(...OWN, {
    type: 'GiftsRefunded',
    data: { refund_id: 'r1', attempt: 1, provider: 'p', refund_ref: 're_1', amount: 250 },
  });
  const failed = { provider: 'p', kind: 'refund failed', refund_id: 'r1', attempt: 1, code: 'x' } as const;
  const unsure = ledger();
  const event: ProviderEvent = { ...failed, refund_ref: 're_1' };
  assert.equal(await recordProviderEvent(events, 't1', event, context('a'), unsure), 'recorded');
  assert.deepEqual(unsure.asked, ['p,ch_1']);
  assert.deepEqual(
    events.log.slice(6).map(({ type }) => type),
    ['RefundFailed', 'RefundedAtProvider'],
  );
});

test('asks nothing about other provider events', async () => {
  const questions = { refundedByOthers: () => Promise.reject(new Error('asked')) };
  const opened = { provider: 'p', kind: 'dispute opened', charge_id: 'ch_1', dispute_id: 'd', amount: 5 } as const;
  const event: ProviderEvent = { ...opened, reason: 'fraudulent' };
  assert.equal(await recordProviderEvent(charged(), 't1', event, context('a'), questions), 'recorded');
});

const busOf = (answer: (subject: string, request: object, options: object) => unknown): Bus =>
  ({ request: async (...of: [string, object, object]) => answer(...of) }) as unknown as Bus;

test('concurrent questions for one payment share an answer, later ones do not', async () => {
  let asked = 0;
  const questions = paymentQuestions(
    busOf(() => ({ outcome: 'action', client_secret: `secret ${++asked}`, waiting: true })),
  );
  const both = await Promise.all([questions.action('t1', 'pi'), questions.action('t1', 'pi')]);
  assert.deepEqual(both, Array(2).fill({ clientSecret: 'secret 1', waiting: true }));
  const [other, third] = await Promise.all([questions.action('t2', 'pi'), questions.action('t1', 'pi_2')]);
  assert.deepEqual([other?.clientSecret, third?.clientSecret], ['secret 2', 'secret 3']);
  assert.equal((await questions.action('t1', 'pi'))?.clientSecret, 'secret 4');
});

test('tells what the provider does not know from what cannot be asked', async () => {
  const unknown = paymentQuestions(busOf(() => ({ outcome: 'unknown' })));
  assert.deepEqual([await unknown.action('t1', 'pi'), await unknown.transactionOf('pi')], [undefined, undefined]);
  const found = paymentQuestions(busOf(() => ({ outcome: 'found', transaction_id: 't1' })));
  assert.equal(await found.transactionOf('pi'), 't1');
  for (const error of [new DeadlineError('payments', 10), new NoRespondersError('none'), new RemoteError('broken')]) {
    const failing = paymentQuestions(busOf(() => Promise.reject(error)));
    await rejects(failing.transactionOf('pi'), UnavailableError, /cannot be asked/);
    await assert.rejects(failing.transactionOf('pi'), { cause: error });
  }
  const broken = paymentQuestions(busOf(() => Promise.reject(new TypeError('a fault'))));
  await rejects(broken.transactionOf('pi'), TypeError, /a fault/);
  const ofOtherRelease = paymentQuestions(busOf(() => ({ outcome: 'perhaps' })));
  await rejects(ofOtherRelease.transactionOf('pi'), UnavailableError, /cannot be asked/);
  const refusing = paymentQuestions(busOf(() => ({ outcome: 'impossible', cause: 'no key' })));
  await rejects(refusing.transactionOf('pi'), UnavailableError, /no key/);
});

test('counts the external refunds of a charge by the lookup of a refund that does not exist', async () => {
  const requests: unknown[] = [];
  const questions = paymentQuestions(
    busOf((subject, request) => {
      requests.push([subject, request]);
      return { outcome: 'never', others: 70 };
    }),
  );
  assert.equal(await questions.refundedByOthers('p', 'ch_1'), 70);
  assert.deepEqual(requests, [
    [
      SUBJECTS.lookUpRefund,
      { refund_id: 'none', attempt: 1, started_at: '1970-01-01T00:00:00.000Z', provider: 'p', charge_id: 'ch_1' },
    ],
  ]);
  assert.equal(await paymentQuestions(busOf(() => ({ outcome: 'never' }))).refundedByOthers('p', 'ch_1'), 0);
});

test('asks for a payment by its ids, and waits ten seconds for the answer', async () => {
  const requests: unknown[] = [];
  const questions = paymentQuestions(
    busOf((...request) => {
      requests.push(request);
      return { outcome: 'unknown' };
    }),
  );
  await questions.action('t1', 'pi');
  await questions.transactionOf('pi');
  const within = { timeoutMs: 10_000 };
  assert.deepEqual(requests, [
    [SUBJECTS.paymentAction, { transaction_id: 't1', payment_id: 'pi' }, within],
    [SUBJECTS.findPayment, { payment_id: 'pi' }, within],
  ]);
});

test.run();
