/** What is said of expiries, once, whatever dies (docs/api/events.md#expiry-events). */
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { expiryNewsRounds } from '../../../src/processors/schedule/tellExpiry.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { dueGifts } from '../../../src/projections/dueGifts.js';
import { scheduleProjection } from '../../../src/projections/schedule.js';
import { collectionOf } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { mortal } from '../../support/faults/mortal.js';
import type { Bought, House } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('expiries');
const { signal } = new AbortController();
/** The last valid day of the house's gifts. */
const LAST_DAY = '2099-01-01';
const NEAR = '2098-12-02T01:00:00.000Z';
const OVER = '2099-01-02T00:00:00.000Z';

/** Bought long ago, charged, and known to the read model. */
async function bought(house: House, receivers: readonly object[]): Promise<Bought> {
  const one = await house.buy(receivers, { at: '2098-01-01T00:00:00.000Z' });
  const charge = { amount: 1, provider: 'p', charge_id: 'c' };
  await house.append(transactionStream(one.transactionId), 'PaymentCharged', charge);
  await known(house.reads, one.transactionId, LAST_DAY);
  return one;
}

async function known(store: ReadStore, id: string, expires_on: string): Promise<void> {
  const collection = collectionOf(scheduleProjection);
  await store.ensure(collection);
  await store.write([{ collection, documents: [{ id, position: '1', body: { expires_on } }] }]);
  await store.activate(collection.name, collection.version);
}

function rounds(house: House, deps: Pick<House['deps'], 'events' | 'records'> = house.deps) {
  const { events, records } = deps;
  const due = dueGifts(house.reads, { ...openReadModel(house.reads, scheduleProjection), reached: async () => true });
  const writer = openWriter(events, Date.now);
  const round = expiryNewsRounds({ events, records, writer, mayAct: () => undefined, due });
  return async (now: string) => round(now, signal);
}

const newsOf = async (house: House, gift = ''): Promise<string[]> =>
  (await house.types(giftStream(gift))).filter((type) => type.startsWith('GiftExpir'));

test('says of each gift that its last day is near, and over, once', async ({ house }) => {
  const { giftIds } = await bought(house, Array(40).fill({}));
  const round = rounds(house);
  for (const now of ['2098-12-01T23:59:59.999Z', NEAR, NEAR, '2098-12-03T00:00:00.000Z']) await round(now);
  for (const gift of giftIds) assert.equal(await newsOf(house, gift), ['GiftExpiring']);
  for (const now of [`${LAST_DAY}T23:59:59.999Z`, OVER, OVER]) await round(now);
  for (const gift of giftIds) assert.equal(await newsOf(house, gift), ['GiftExpiring', 'GiftExpired']);
  await house.reads.records.delete('schedule/expiry');
  await rounds(house)('2099-01-20T00:00:00.000Z');
  for (const gift of giftIds) assert.equal(await newsOf(house, gift), ['GiftExpiring', 'GiftExpired'], 'nothing twice');
});

test('decides by the streams: redeemed, cancelled and extended gifts are left alone', async ({ house }) => {
  const { giftIds } = await bought(house, [{}, {}, {}, {}]);
  const [redeemed = '', cancelled = '', extended = '', plain = ''] = giftIds;
  await rounds(house)(NEAR);
  await house.append(giftStream(redeemed), 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await house.append(giftStream(cancelled), 'GiftCancelled', { reason: 'r' });
  const later = { expires_on: '2099-06-01', voucher_expires_at: null, reason: '' };
  await house.append(giftStream(extended), 'GiftExtended', later, NEAR);
  await rounds(house)(OVER);
  assert.equal(await newsOf(house, plain), ['GiftExpiring', 'GiftExpired']);
  for (const gift of [redeemed, cancelled, extended]) assert.equal(await newsOf(house, gift), ['GiftExpiring']);
  await known(house.reads, `gift/${extended}`, '2099-06-01');
  await rounds(house)('2099-05-02T00:00:00.000Z');
  await rounds(house)('2099-06-02T00:00:00.000Z');
  assert.equal(await newsOf(house, extended), ['GiftExpiring', 'GiftExpiring', 'GiftExpired']);
});

for (const moment of ['before', 'after'] as const) {
  test(`says it once where it dies ${moment} any one append`, async ({ house }) => {
    const { giftIds } = await bought(house, [{}, {}, {}]);
    let died = 0;
    for (let at = 1; ; at++) {
      const doomed = mortal(house.deps, at, moment);
      await rounds(house, doomed.deps)(OVER).catch(() => undefined);
      if (!doomed.dead) break;
      died++;
    }
    assert.ok(died >= 1);
    for (const gift of giftIds) assert.equal(await newsOf(house, gift), ['GiftExpired']);
  });
}

test('one that can not be read holds up no other, and its day is looked at again', async ({ house }) => {
  const [damaged, good] = [await bought(house, [{}]), await bought(house, [{}])];
  let broken = true;
  const events: House['events'] = {
    ...house.events,
    read: async (stream, ...rest) => {
      if (broken && stream === transactionStream(damaged.transactionId)) throw new Error('unreadable');
      return house.events.read(stream, ...rest);
    },
  };
  const round = rounds(house, { events, records: house.deps.records });
  const failed = await round(OVER).then(
    () => false,
    () => true,
  );
  assert.ok(failed);
  assert.equal(await newsOf(house, good.giftIds[0]), ['GiftExpired']);
  broken = false;
  await round(OVER);
  assert.equal(await newsOf(house, damaged.giftIds[0]), ['GiftExpired']);
});

test.run();
