import * as assert from 'uvu/assert';
import type { ChargeDeps } from '../../../src/processors/purchase/chargeStep.js';
import { GiveUpError, NotYetError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { rejects } from '../../support/assertions/rejects.js';
import { bought, CARD, CHARGED, type Charging, subjects, waitsUntil } from '../../support/fixtures/charging.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('a charge that waits for its buyer to prove who they are');

const WAITING = { outcome: 'authentication', provider: 'p', payment_id: 'pi_1', action: 'redirect', simulated: true };
const UNKNOWN = { outcome: 'unknown' };
const DECLINED = { outcome: 'declined', provider: 'p', code: 'authentication_required', simulated: false };
const START = Date.parse('2026-05-01T12:00:00.000Z');
const time = (ms: number): string => new Date(START + ms).toISOString();
const MINUTES = 60_000;

/** So many ms after the buyer was asked. */
const after = (ms: number): Pick<ChargeDeps, 'now'> => ({ now: () => START + ms });

/** A charge whose buyer has fifteen minutes from `START` on. */
async function waiting(log: TestLog, answer: object): Promise<Charging> {
  const purchase = await bought(log, { at: time(-1_000), answer: async () => answer });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, time(-500));
  await log.append(purchase.stream, 'PaymentAuthenticationRequired', waitsUntil(time(15 * MINUTES)), time(0));
  return purchase;
}

test('records until when the buyer has time, and polls later', async ({ log }) => {
  const purchase = await bought(log, { answer: async () => WAITING });
  const retryPolicy = { ...RETRY_POLICY, authenticationMs: 600_000 };
  const end = Date.now() + 600_000;
  const waits = await rejects(
    purchase.charge(true, { retryPolicy, now: () => end - 600_000 }),
    NotYetError,
    /has not proved who they are/,
  );
  assert.equal([waits.mayNeverCome, subjects(purchase)], [false, [SUBJECTS.charge]]);
  const required = (await log.events.read(purchase.stream)).at(-1);
  assert.equal(
    [required?.type, required?.data, required?.metadata.simulated],
    ['PaymentAuthenticationRequired', waitsUntil(new Date(end).toISOString()), true],
  );
});

test('asks for the charge once though another process records first that it waits', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      await log.append(purchase.stream, 'PaymentAuthenticationRequired', waitsUntil(time(0)));
      return WAITING;
    },
  });
  await rejects(purchase.charge(true), NotYetError, /has not proved/);
  assert.equal(subjects(purchase), [SUBJECTS.charge]);
  assert.is((await log.all('PaymentAuthenticationRequired')).length, 1);
});

test('records that it waits though another event is appended while the worker answers', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      const disputed = { provider: 'p', dispute_id: 'dp_1', amount: 250, reason: 'fraudulent' };
      await log.append(purchase.stream, 'DisputeOpened', disputed);
      return WAITING;
    },
  });
  await rejects(purchase.charge(true), NotYetError, /has not proved/);
  assert.equal(subjects(purchase), [SUBJECTS.charge]);
  assert.is((await log.types(purchase.stream)).at(-1), 'PaymentAuthenticationRequired');
});

test('records the answer where the buyer was declared charged while the worker answered', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      await log.append(purchase.stream, 'PaymentCharged', { amount: 250, provider: 'p', charge_id: 'ch_1' });
      return WAITING;
    },
  });
  await purchase.charge(true);
  assert.equal((await log.types(purchase.stream)).slice(1), ['ChargeStarted', 'PaymentCharged']);
});

for (const answer of [UNKNOWN, WAITING])
  test(`polls less and less often, and at the end of the time: ${answer.outcome}`, async ({ log }) => {
    const purchase = await waiting(log, answer);
    const waits: number[] = [];
    for (const ms of [-60_000, 0, 1, 4_999, 5_000, 14_999, 15_000, 45_000, 14 * MINUTES, 15 * MINUTES - 1])
      waits.push((await rejects(purchase.charge(false, after(ms)), NotYetError, /has not proved/)).waitMs);
    assert.equal(waits, [5_000, 5_000, 4_999, 1, 10_000, 1, 30_000, 90_000, 60_000, 1]);
    assert.equal(new Set(subjects(purchase)), new Set([SUBJECTS.lookUpCharge]));
    assert.equal(purchase.requested[0]?.[1], { transaction_id: purchase.transactionId, payment_id: 'pi_1' });
    assert.is((await log.types(purchase.stream)).length, 3);
  });

for (const [answer, type] of [
  [CHARGED, 'PaymentCharged'],
  [{ ...DECLINED, code: 'lost_card' }, 'PaymentDeclined'],
] as const)
  test(`records ${type} as found`, async ({ log }) => {
    const purchase = await waiting(log, answer);
    await purchase.charge(false, after(1_000));
    assert.equal([subjects(purchase), (await log.types(purchase.stream)).at(-1)], [[SUBJECTS.lookUpCharge], type]);
  });

test('gives up where the buyer has paid another amount', async ({ log }) => {
  const purchase = await waiting(log, { ...CHARGED, amount: 1 });
  await rejects(purchase.charge(false, after(1_000)), GiveUpError, /took 1 pence/);
});

test('cancels the payment at the end of the time, and where the clock was set back far', async ({ log }) => {
  const cancelled: unknown[] = [];
  for (const ms of [15 * MINUTES, 16 * MINUTES, -15 * MINUTES - 5_001]) {
    const purchase = await waiting(log, DECLINED);
    await purchase.charge(false, after(ms));
    cancelled.push(purchase.requested.map(([subject, message]) => [subject, message]));
    assert.equal(cancelled.at(-1), [
      [
        SUBJECTS.cancelCharge,
        { transaction_id: purchase.transactionId, payment_id: 'pi_1', code: 'authentication_required' },
      ],
    ]);
    assert.is((await log.types(purchase.stream)).at(-1), 'PaymentDeclined');
  }
  const setBackLess = await waiting(log, UNKNOWN);
  await rejects(setBackLess.charge(false, after(-15 * MINUTES - 5_000)), NotYetError, /has not proved/);
});

test('records a charge that could not be cancelled any more', async ({ log }) => {
  const purchase = await waiting(log, CHARGED);
  await purchase.charge(false, after(15 * MINUTES));
  assert.equal(
    [subjects(purchase), (await log.types(purchase.stream)).at(-1)],
    [[SUBJECTS.cancelCharge], 'PaymentCharged'],
  );
});

test('comes back at once where the buyer fails while the worker is asked', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      await log.append(purchase.stream, 'PaymentAuthenticationRequired', waitsUntil(time(0)));
      const failed = { provider: 'p', payment_id: 'pi_1', code: 'card_declined' };
      await log.append(purchase.stream, 'PaymentAuthenticationFailed', failed);
      return WAITING;
    },
  });
  const waits = await rejects(purchase.charge(true), NotYetError, /has failed to prove/);
  assert.is(waits.waitMs, 1);
});

test.run();
