import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type House, openHouse, phone } from '../support/service/house.js';
import { everyKillPoint } from '../support/faults/killPoints.js';
import { mortal } from '../support/faults/mortal.js';

const test = suite('process managers that die');
let house: House;
test.before(async () => {
  house = await openHouse();
  await house.work();
});
test.after(() => house.close());

const sentLines = (giftId: string): number =>
  house.lines.filter(({ msg, gift }) => msg === 'simulated notification sent' && gift === giftId.slice(0, 6)).length;

/** One purchase, its process dying at one moment; another finishes it. */
async function dieAt(part: House, at: number, moment: 'before' | 'after'): Promise<boolean> {
  const doomed = mortal(part.deps, at, moment);
  const first = part.process({ ...doomed.deps, leaseMs: 90 });
  const { transactionId, giftIds } = await part.buy([phone(1), { user_id: 'nobody' }, phone(2)]);
  await house.until(async () => doomed.dead || (await finished(giftIds)));
  const died = doomed.dead;
  const second = part.process({ leaseMs: 90 });
  await house.until(() => finished(giftIds));
  await Promise.all([first.close(), second.close()]);

  const where = `died ${moment} effect ${at}`;
  assert.equal(
    await house.types(`transaction-${transactionId}`),
    ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
    where,
  );
  for (const [index, giftId] of giftIds.entries()) {
    assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued'], where);
    assert.equal(
      await house.types(`notification-${giftId}`),
      index === 1 ? ['NotificationFailed'] : ['NotificationStarted', 'NotificationSent'],
      where,
    );
    assert.is(sentLines(giftId), index === 1 ? 0 : 1, where);
  }
  assert.is((await house.all('WorkParked')).length, 0, where);
  return died;
}

async function finished(giftIds: readonly string[]): Promise<boolean> {
  const told = await Promise.all(giftIds.map((giftId) => house.types(`notification-${giftId}`)));
  return told.every((types) => types.some((type) => type === 'NotificationSent' || type === 'NotificationFailed'));
}

for (const moment of ['before', 'after'] as const) {
  test(`dying ${moment} any one effect loses nothing and repeats nothing`, async () => {
    const deaths = await everyKillPoint(house, (part, at) => dieAt(part, at, moment));
    assert.ok(deaths >= 10, `a purchase has ${deaths} effects`);
  });
}

test.run();
