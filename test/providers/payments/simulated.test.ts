import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { simulatedPayments } from '../../../src/providers/payments/simulated.js';
import { declineCodeOf } from '../../../src/providers/payments/testCards.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('simulated payments');

const ask = (transaction_id: string, payment_reference: string) => ({
  transaction_id,
  amount: 250,
  payment_reference,
  customer: null,
  started_at: '1970-01-01T00:00:00.000Z',
});
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
    ['pm_card_detached', 'invalid_request_error'],
    ['4000000000000002', 'generic_decline'],
    ['4000 0000 0000 9995', 'insufficient_funds'],
    ['4000-0000-0000-9987', 'lost_card'],
    ['4000000000000069', 'expired_card'],
  ];
  for (const [reference, code] of declines) assert.is(declineCodeOf(reference), code, reference);
  for (const reference of [
    'pm_card_visa',
    '4242424242424242',
    'card_of_ann',
    '',
    'constructor',
    'pm_card_constructor',
    'pm_card_visa_',
  ])
    assert.is(declineCodeOf(reference), undefined, reference);
});

test('declines amounts that a card can never be charged with', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
  const outcomes: [amount: number, outcome: string][] = [
    [1, 'amount_too_small'],
    [29, 'amount_too_small'],
    [30, 'charged'],
    [99_999_999, 'charged'],
    [100_000_000, 'amount_too_large'],
    [0, 'charged'],
  ];
  for (const [amount, expected] of outcomes) {
    const reply = await payments.charge({ ...ask(`t-${amount}`, 'pm_card_visa'), amount });
    assert.is(reply.outcome === 'declined' ? reply.code : reply.outcome, expected, `${amount}`);
  }
});

test('answers a transaction once for ever, whatever is asked later', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
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
  const replies = await Promise.all(
    references.map((reference) => simulatedPayments(records, () => 0).charge(ask('t1', reference))),
  );
  for (const reply of replies) assert.equal(reply, replies[0]);
});

test('looks up an answer for more than a day', async () => {
  let now = 0;
  const payments = simulatedPayments(
    memoryRecords(() => now),
    () => now,
  );
  const reply = await payments.charge(ask('t1', 'pm_card_visa'));
  now = 1.5 * DAY;
  assert.equal(await payments.lookUp({ transaction_id: 't1', payment_id: null }), reply);
  now = 3 * DAY;
  assert.equal(await payments.lookUp({ transaction_id: 't1', payment_id: null }), { outcome: 'unknown' });
  assert.equal(await payments.lookUp({ transaction_id: 't2', payment_id: null }), { outcome: 'unknown' });
});

test('asks for authentication as the published test cards do', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
  const outcomes: [reference: string, proves: boolean, code: string | undefined][] = [
    ['pm_card_authenticationRequired', true, undefined],
    ['pm_card_authenticationRequiredOnSetup', true, undefined],
    ['pm_card_authenticationRequiredSetupForOffSession', true, undefined],
    ['pm_card_threeDSecure2Required', true, undefined],
    ['pm_card_threeDSecureRequired', true, undefined],
    ['4000 0027 6000 3184', true, undefined],
    ['4000002500003155', true, undefined],
    ['4000008260003178', true, 'insufficient_funds'],
    ['pm_card_threeDSecureRequiredChargeDeclined', true, 'generic_decline'],
    ['pm_card_threeDSecureRequiredProcessingError', true, 'processing_error'],
    ['pm_card_authenticationRequired', false, 'payment_intent_authentication_failure'],
  ];
  for (const [index, [reference, proves, code]] of outcomes.entries()) {
    const id = `t${index}`;
    const payment_id = `ch_simulated_${id}`;
    const waiting = {
      outcome: 'authentication',
      provider: 'simulated',
      payment_id,
      action: 'use_stripe_sdk',
      simulated: true,
    };
    assert.equal(await payments.charge(ask(id, reference)), waiting, reference);
    assert.equal(await payments.lookUp({ transaction_id: id, payment_id }), waiting);
    assert.equal(await payments.action({ transaction_id: id, payment_id }), {
      outcome: 'action',
      client_secret: `${payment_id}_secret_simulated`,
      waiting: true,
    });
    assert.equal(await payments.find({ payment_id }), { outcome: 'found', transaction_id: id });
    const settled =
      code === undefined
        ? { outcome: 'charged', provider: 'simulated', charge_id: payment_id, simulated: true }
        : { outcome: 'declined', provider: 'simulated', code, simulated: true };
    assert.equal(await payments.authenticate(id, proves), settled, reference);
    assert.equal(await payments.authenticate(id, !proves), settled, 'once');
    assert.equal(await payments.cancel({ transaction_id: id, payment_id, code: 'late' }), settled, 'too late');
    assert.equal(await payments.charge(ask(id, reference)), settled);
    assert.equal(await payments.lookUp({ transaction_id: id, payment_id }), settled);
  }
  assert.equal(await payments.find({ payment_id: 'pi_of_somebody' }), { outcome: 'unknown' });
  assert.is(await payments.authenticate('nobody', true), undefined);
});

test('cancels a payment that waits, or is no longer known, for good', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
  await payments.charge(ask('t1', 'pm_card_authenticationRequired'));
  for (const id of ['t1', 't2']) {
    const cancelled = { outcome: 'declined', provider: 'simulated', code: 'authentication_required', simulated: true };
    assert.equal(
      await payments.cancel({ transaction_id: id, payment_id: `ch_simulated_${id}`, code: 'authentication_required' }),
      cancelled,
    );
    assert.equal(await payments.authenticate(id, true), cancelled);
    assert.is(
      ((await payments.action({ transaction_id: id, payment_id: `ch_simulated_${id}` })) as { waiting: boolean })
        .waiting,
      false,
    );
  }
});

test('pm_card_flaky fails twice, then charges', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
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
  assert.is(
    (
      await simulatedPayments(
        memoryRecords(() => 0),
        () => 0,
      ).charge(ask('t1', 'pm_card_slow'))
    ).outcome,
    'charged',
  );
  assert.ok(performance.now() - began > 2_900);
});

test('gives money back once an attempt, and never where the test card says so', async () => {
  const payments = simulatedPayments(
    memoryRecords(() => 0),
    () => 0,
  );
  const request = {
    refund_id: 'r1',
    attempt: 1,
    transaction_id: 't1',
    amount: 250,
    provider: 'simulated',
    charge_id: 'c',
    payment_reference: 'pm_card_visa',
    started_at: '1970-01-01T00:00:00.000Z',
  };
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
