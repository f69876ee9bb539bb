import * as assert from 'uvu/assert';
import { simulatedPayments } from '../../src/providers/payments/simulated.js';
import type { House } from '../support/service/house.js';
import { houseSuite } from '../support/service/houseSuite.js';

const test = houseSuite('a charge that hangs');

const HANGS = 'pm_card_hangs';
/** Longer than the test. */
const ANSWER_MS = 600_000;

/** Workers whose provider never answers for one card, until it is let go. */
async function workThatHangs(house: House): Promise<() => void> {
  let letGo: () => void = () => undefined;
  const hanging = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const payments = simulatedPayments(house.deps.records, Date.now);
  await house.work({
    payments: {
      ...payments,
      async charge(request) {
        if (request.payment_reference === HANGS) await hanging;
        return payments.charge(request);
      },
    },
  });
  return letGo;
}

test('settles 5,000 purchases behind a hanging one', async ({ house }) => {
  const letGo = await workThatHangs(house);
  // A test that buys so much at once is slow to renew a short lease.
  house.process({ retryPolicy: { ...house.deps.retryPolicy, answerMs: ANSWER_MS }, leaseMs: 20_000 });
  const count = async (...types: string[]): Promise<number> => (await house.all(...types)).length;
  /** Until so many more purchases have their gifts. */
  const settle = async (purchases: number): Promise<void> => {
    const before = await count('GiftIssued');
    await Promise.all(Array.from({ length: purchases }, () => house.buy([{}])));
    await house.until(async () => (await count('GiftIssued')) === before + purchases);
  };
  await settle(2_000);
  const { transactionId } = await house.buy([{}], { reference: HANGS });
  await house.until(async () => (await house.types(`transaction-${transactionId}`)).includes('ChargeStarted'));
  await settle(5_000);
  assert.is(await count('PaymentCharged'), 7_000);
  assert.equal(await house.types(`transaction-${transactionId}`), ['GiftsPurchased', 'ChargeStarted']);

  letGo();
  await house.until(async () => (await house.types(`transaction-${transactionId}`)).includes('PaymentCharged'));
  assert.equal(await house.all('WorkParked'), []);
});

test('parks a hanging purchase with its cause after too long', async ({ house }) => {
  const letGo = await workThatHangs(house);
  house.process({ retryPolicy: { ...house.deps.retryPolicy, answerMs: 40, giveUpMs: 150 } });
  const { transactionId } = await house.buy([{}], { reference: HANGS });
  const { transactionId: other } = await house.buy([{}]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  const [parked] = (await house.all('WorkParked')).map(
    ({ data }) => data as { entity: string; step: string; cause: string },
  );
  assert.equal([parked?.entity, parked?.step], [transactionId, 'charge']);
  assert.match(parked?.cause ?? '', 'DeadlineError: no answer on payments.charge within 40 ms');
  await house.until(async () => (await house.types(`transaction-${other}`)).includes('PaymentCharged'));
  // Said once it stands in the log.
  await house.until(async () => house.lines.some(({ msg }) => String(msg).includes('parked: it could not be done')));
  letGo();
});

test.run();
