import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { declineCodeOf, simulatedPayments } from '../../../src/workers/payments/simulated.js';
import { memoryRecords } from '../../support/memoryRecords.js';

const test = suite('simulated payments');

const ask = (transaction_id: string, payment_reference: string) => ({ transaction_id, amount: 250, payment_reference, customer: null, started_at: '1970-01-01T00:00:00.000Z' });
const DAY = 24 * 3_600_000;

test('declines as the published test cards and payment methods do', () => {
  const declines: [reference: string, code: string][] = [
    ['pm_card_chargeDeclined', 'generic_decline'],
    ['pm_card_visa_chargeDeclined', 'generic_decline'],
    ['tok_chargeDeclined', 'generic_decline'],
    ['pm_card_chargeDeclinedInsufficientFunds', 'insufficient_funds'],
    ['pm_card_visa_chargeDeclinedLostCard', 'lost_card'],
    ['pm_card_chargeDeclinedStolenCard', 'stolen_card'],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card'],
    ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc'],
    ['pm_card_chargeDeclinedProcessingError', 'processing_error'],
    ['pm_card_chargeDeclinedVelocityLimitExceeded', 'card_velocity_exceeded'],
    ['4000000000000002', 'generic_decline'],
    ['4000 0000 0000 9995', 'insufficient_funds'],
    ['4000-0000-0000-9987', 'lost_card'],
    ['4000000000000069', 'expired_card'],
  ];
  for (const [reference, code] of declines) assert.is(declineCodeOf(reference), code, reference);
  for (const reference of ['pm_card_visa', '4242424242424242', 'card_of_ann', '', 'constructor', 'pm_card_constructor', 'pm_card_visa_']) assert.is(declineCodeOf(reference), undefined, reference);
});

test('answers a transaction once for ever, whatever is asked later', async () => {
  const payments = simulatedPayments(memoryRecords(() => 0), () => 0);
  const first = await payments.charge(ask('t1', 'pm_card_visa'));
  assert.equal(first, { outcome: 'charged', provider: 'simulated', charge_id: 'ch_simulated_t1', simulated: true });
  assert.equal(await payments.charge(ask('t1', 'pm_card_chargeDeclined')), first);
  const declined = await payments.charge(ask('t2', 'pm_card_chargeDeclined'));
  assert.equal(declined, { outcome: 'declined', provider: 'simulated', code: 'generic_decline', simulated: true });
  assert.equal(await payments.charge(ask('t2', 'pm_card_visa')), declined);
});

test('of several at once one answer holds, in other processes too', async () => {
  const records = memoryRecords(() => 0);
  const references = ['pm_card_visa', 'pm_card_chargeDeclined', 'pm_card_visa', 'pm_card_chargeDeclined'];
  const replies = await Promise.all(references.map((reference) => simulatedPayments(records, () => 0).charge(ask('t1', reference))));
  for (const reply of replies) assert.equal(reply, replies[0]);
});

test('looks up what was answered, for more than a day', async () => {
  let now = 0;
  const payments = simulatedPayments(memoryRecords(() => now), () => now);
  const reply = await payments.charge(ask('t1', 'pm_card_visa'));
  now = 1.5 * DAY;
  assert.equal(await payments.lookUp({ transaction_id: 't1' }), reply);
  now = 3 * DAY;
  assert.equal(await payments.lookUp({ transaction_id: 't1' }), { outcome: 'unknown' });
  assert.equal(await payments.lookUp({ transaction_id: 't2' }), { outcome: 'unknown' });
});

test('pm_card_flaky fails twice, then charges', async () => {
  const payments = simulatedPayments(memoryRecords(() => 0), () => 0);
  for (const attempt of [1, 2]) {
    try {
      await payments.charge(ask('t1', 'pm_card_flaky'));
      assert.unreachable(`attempt ${attempt}`);
    } catch (error) {
      assert.match((error as Error).message, 'in trouble');
    }
  }
  assert.is((await payments.charge(ask('t1', 'pm_card_flaky'))).outcome, 'charged');
});

test('pm_card_slow takes its time', async () => {
  const began = performance.now();
  assert.is((await simulatedPayments(memoryRecords(() => 0), () => 0).charge(ask('t1', 'pm_card_slow'))).outcome, 'charged');
  assert.ok(performance.now() - began > 2_900);
});

test('gives money back once an attempt, and never where the test card says so', async () => {
  const payments = simulatedPayments(memoryRecords(() => 0), () => 0);
  const request = { refund_id: 'r1', attempt: 1, transaction_id: 't1', amount: 250, provider: 'simulated', charge_id: 'c', payment_reference: 'pm_card_visa', started_at: '1970-01-01T00:00:00.000Z' };
  assert.equal(await payments.lookUpRefund(request), { outcome: 'never' });
  const given = { outcome: 'refunded', provider: 'simulated', refund_ref: 're_simulated_r1_1', simulated: true };
  assert.equal(await payments.refund(request), given);
  assert.equal(await payments.refund({ ...request, payment_reference: 'pm_card_refundFail' }), given);
  assert.equal(await payments.lookUpRefund(request), given);
  assert.equal(await payments.lookUpRefund({ ...request, attempt: 2 }), { outcome: 'never' });
  const refused = { outcome: 'refused', provider: 'simulated', code: 'expired_or_canceled_card', simulated: true };
  assert.equal(await payments.refund({ ...request, attempt: 2, payment_reference: 'pm_card_refundFail' }), refused);
});

test.run();
