/** What is said of expiries, once, whatever dies (docs/api/events.md#expiry-events). */
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { expiryEventRounds } from '../../../src/processors/schedule/tellExpiry.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { dueGifts } from '../../../src/projections/dueGifts.js';
import { scheduleProjection } from '../../../src/projections/schedule.js';
import { collectionOf } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { crashable } from '../../support/faults/crashable.js';
import type { TestInstallation } from '../../support/service/installation.js';
import type { Bought } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('expiries');
const { signal } = new AbortController();
/** The last valid day of the house's gifts. */
const LAST_DAY = '2099-01-01';
const NEAR = '2098-12-02T01:00:00.000Z';
const OVER = '2099-01-02T00:00:00.000Z';

/** Bought long ago, charged, and known to the read model. */
async function bought(installation: TestInstallation, receivers: readonly object[]): Promise<Bought> {
  const one = await installation.buy(receivers, { at: '2098-01-01T00:00:00.000Z' });
  const charge = { amount: 1, provider: 'p', charge_id: 'c' };
  await installation.append(transactionStream(one.transactionId), 'PaymentCharged', charge);
  await known(installation.reads, one.transactionId, LAST_DAY);
  return one;
}

async function known(store: ReadStore, id: string, expires_on: string): Promise<void> {
  const collection = collectionOf(scheduleProjection);
  await store.ensure(collection);
  await store.write([{ collection, documents: [{ id, position: '1', body: { expires_on } }] }]);
  await store.activate(collection.name, collection.version);
}

function rounds(
  installation: TestInstallation,
  deps: Pick<TestInstallation['deps'], 'events' | 'records'> = installation.deps,
) {
  const { events, records } = deps;
  const due = dueGifts(installation.reads, {
    ...openReadModel(installation.reads, scheduleProjection),
    reached: async () => true,
  });
  const writer = openWriter(events, Date.now);
  const round = expiryEventRounds({ events, records, writer, mayAct: () => undefined, due });
  return async (now: string) => round(now, signal);
}

const newsOf = async (installation: TestInstallation, gift = ''): Promise<string[]> =>
  (await installation.types(giftStream(gift))).filter((type) => type.startsWith('GiftExpir'));

test('says of each gift that its last day is near, and over, once', async ({ installation }) => {
  const { giftIds } = await bought(installation, Array(40).fill({}));
  const round = rounds(installation);
  for (const now of ['2098-12-01T23:59:59.999Z', NEAR, NEAR, '2098-12-03T00:00:00.000Z']) await round(now);
  for (const gift of giftIds) assert.equal(await newsOf(installation, gift), ['GiftExpiring']);
  for (const now of [`${LAST_DAY}T23:59:59.999Z`, OVER, OVER]) await round(now);
  for (const gift of giftIds) assert.equal(await newsOf(installation, gift), ['GiftExpiring', 'GiftExpired']);
  await installation.reads.records.delete('schedule/expiry');
  await rounds(installation)('2099-01-20T00:00:00.000Z');
  for (const gift of giftIds)
    assert.equal(await newsOf(installation, gift), ['GiftExpiring', 'GiftExpired'], 'nothing twice');
});

test('decides by the streams: redeemed, cancelled and extended gifts are left alone', async ({ installation }) => {
  const { giftIds } = await bought(installation, [{}, {}, {}, {}]);
  const [redeemed = '', cancelled = '', extended = '', plain = ''] = giftIds;
  await rounds(installation)(NEAR);
  await installation.append(giftStream(redeemed), 'GiftRedeemed', { redemption_id: 'r', merchant_id: null });
  await installation.append(giftStream(cancelled), 'GiftCancelled', { reason: 'r' });
  const later = { expires_on: '2099-06-01', voucher_expires_at: null, reason: '' };
  await installation.append(giftStream(extended), 'GiftExtended', later, NEAR);
  await rounds(installation)(OVER);
  assert.equal(await newsOf(installation, plain), ['GiftExpiring', 'GiftExpired']);
  for (const gift of [redeemed, cancelled, extended]) assert.equal(await newsOf(installation, gift), ['GiftExpiring']);
  await known(installation.reads, `gift/${extended}`, '2099-06-01');
  await rounds(installation)('2099-05-02T00:00:00.000Z');
  await rounds(installation)('2099-06-02T00:00:00.000Z');
  assert.equal(await newsOf(installation, extended), ['GiftExpiring', 'GiftExpiring', 'GiftExpired']);
});

for (const moment of ['before', 'after'] as const) {
  test(`says it once where it dies ${moment} any one append`, async ({ installation }) => {
    const { giftIds } = await bought(installation, [{}, {}, {}]);
    let died = 0;
    for (let at = 1; ; at++) {
      const doomed = crashable(installation.deps, at, moment);
      await rounds(installation, doomed.deps)(OVER).catch(() => undefined);
      if (!doomed.dead) break;
      died++;
    }
    assert.ok(died >= 1);
    for (const gift of giftIds) assert.equal(await newsOf(installation, gift), ['GiftExpired']);
  });
}

test('one that can not be read holds up no other, and its day is looked at again', async ({ installation }) => {
  const [damaged, good] = [await bought(installation, [{}]), await bought(installation, [{}])];
  let broken = true;
  const events: TestInstallation['events'] = {
    ...installation.events,
    read: async (stream, ...rest) => {
      if (broken && stream === transactionStream(damaged.transactionId)) throw new Error('unreadable');
      return installation.events.read(stream, ...rest);
    },
  };
  const round = rounds(installation, { events, records: installation.deps.records });
  const failed = await round(OVER).then(
    () => false,
    () => true,
  );
  assert.ok(failed);
  assert.equal(await newsOf(installation, good.giftIds[0]), ['GiftExpired']);
  broken = false;
  await round(OVER);
  assert.equal(await newsOf(installation, damaged.giftIds[0]), ['GiftExpired']);
});

test.run();
