import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type TestInstallation, openInstallation, phone } from '../support/service/installation.js';
import { everyKillPoint } from '../support/faults/killPoints.js';
import { crashable } from '../support/faults/crashable.js';

const test = suite('process managers that die');
let installation: TestInstallation;
test.before(async () => {
  installation = await openInstallation();
  await installation.work();
});
test.after(() => installation.close());

const sentLines = (giftId: string): number =>
  installation.lines.filter(({ msg, gift }) => msg === 'simulated notification sent' && gift === giftId.slice(0, 6))
    .length;

/** One purchase, its process dying at one moment; another finishes it. */
async function dieAt(part: TestInstallation, at: number, moment: 'before' | 'after'): Promise<boolean> {
  const doomed = crashable(part.deps, at, moment);
  const first = part.process({ ...doomed.deps, leaseMs: 90 });
  const { transactionId, giftIds } = await part.buy([phone(1), { user_id: 'nobody' }, phone(2)]);
  await installation.until(async () => doomed.dead || (await finished(giftIds)));
  const died = doomed.dead;
  const second = part.process({ leaseMs: 90 });
  await installation.until(() => finished(giftIds));
  await Promise.all([first.close(), second.close()]);

  const where = `died ${moment} effect ${at}`;
  assert.equal(
    await installation.types(`transaction-${transactionId}`),
    ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
    where,
  );
  for (const [index, giftId] of giftIds.entries()) {
    assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued'], where);
    assert.equal(
      await installation.types(`notification-${giftId}`),
      index === 1 ? ['NotificationFailed'] : ['NotificationStarted', 'NotificationSent'],
      where,
    );
    assert.is(sentLines(giftId), index === 1 ? 0 : 1, where);
  }
  assert.is((await installation.all('WorkParked')).length, 0, where);
  return died;
}

async function finished(giftIds: readonly string[]): Promise<boolean> {
  const told = await Promise.all(giftIds.map((giftId) => installation.types(`notification-${giftId}`)));
  return told.every((types) => types.some((type) => type === 'NotificationSent' || type === 'NotificationFailed'));
}

for (const moment of ['before', 'after'] as const) {
  test(`dying ${moment} any one effect loses nothing and repeats nothing`, async () => {
    const deaths = await everyKillPoint(installation, (part, at) => dieAt(part, at, moment));
    assert.ok(deaths >= 10, `a purchase has ${deaths} effects`);
  });
}

test.run();
