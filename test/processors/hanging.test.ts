import * as assert from 'uvu/assert';
import { simulatedPayments } from '../../src/providers/payments/simulated.js';
import type { TestInstallation } from '../support/service/installation.js';
import { installationSuite } from '../support/service/installationSuite.js';

const test = installationSuite('a charge that hangs');

const HANGS = 'pm_card_hangs';
/** Longer than the test. */
const ANSWER_MS = 600_000;

/** Workers whose provider never answers for one card, until it is let go. */
async function workThatHangs(installation: TestInstallation): Promise<() => void> {
  let letGo: () => void = () => undefined;
  const hanging = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const payments = simulatedPayments(installation.deps.records, Date.now);
  await installation.work({
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

test('settles 5,000 purchases behind a hanging one', async ({ installation }) => {
  const letGo = await workThatHangs(installation);
  // A test that buys so much at once is slow to renew a short lease.
  installation.process({ retryPolicy: { ...installation.deps.retryPolicy, answerMs: ANSWER_MS }, leaseMs: 20_000 });
  const count = async (...types: string[]): Promise<number> => (await installation.all(...types)).length;
  /** Until so many more purchases have their gifts. */
  const settle = async (purchases: number): Promise<void> => {
    const before = await count('GiftIssued');
    await Promise.all(Array.from({ length: purchases }, () => installation.buy([{}])));
    await installation.until(async () => (await count('GiftIssued')) === before + purchases);
  };
  await settle(2_000);
  const { transactionId } = await installation.buy([{}], { reference: HANGS });
  await installation.until(async () =>
    (await installation.types(`transaction-${transactionId}`)).includes('ChargeStarted'),
  );
  await settle(5_000);
  assert.is(await count('PaymentCharged'), 7_000);
  assert.equal(await installation.types(`transaction-${transactionId}`), ['GiftsPurchased', 'ChargeStarted']);

  letGo();
  await installation.until(async () =>
    (await installation.types(`transaction-${transactionId}`)).includes('PaymentCharged'),
  );
  assert.equal(await installation.all('WorkParked'), []);
});

test('parks a hanging purchase with its cause after too long', async ({ installation }) => {
  const letGo = await workThatHangs(installation);
  installation.process({ retryPolicy: { ...installation.deps.retryPolicy, answerMs: 40, giveUpMs: 150 } });
  const { transactionId } = await installation.buy([{}], { reference: HANGS });
  const { transactionId: other } = await installation.buy([{}]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  const [parked] = (await installation.all('WorkParked')).map(
    ({ data }) => data as { entity: string; step: string; cause: string },
  );
  assert.equal([parked?.entity, parked?.step], [transactionId, 'charge']);
  assert.match(parked?.cause ?? '', 'DeadlineError: no answer on payments.charge within 40 ms');
  await installation.until(async () => (await installation.types(`transaction-${other}`)).includes('PaymentCharged'));
  // Said once it stands in the log.
  await installation.until(async () =>
    installation.lines.some(({ msg }) => String(msg).includes('parked: it could not be done')),
  );
  letGo();
});

test.run();
