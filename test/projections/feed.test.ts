/** Who may know of what, by the feed's documents; folded, verified and repaired as every read model is. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { notificationStream } from '../../src/domain/notification.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { type FeedDocument, type FeedEntry, feedProjection } from '../../src/projections/feed/feed.js';
import { repair } from '../../src/runtime/readmodels/maintenance/repair.js';
import { verifyAll, type VerifyOptions, verifySample } from '../../src/runtime/readmodels/maintenance/verify.js';
import { checkpointName, collectionOf } from '../../src/runtime/readmodels/projection.js';
import { append, buy, type Installation, installed, redeem } from '../support/fixtures/projecting.js';
import { depsFor, led, unwatched } from '../support/fixtures/rebuilding.js';
import { until } from '../support/assertions/until.js';

const test = suite('projections/feed');
const FEED = feedProjection;
const COLLECTION = collectionOf(feedProjection);

async function issue(
  installation: Installation,
  bought: Awaited<ReturnType<typeof buy>>,
  receiver: object,
): Promise<string> {
  const [gift = ''] = bought.gifts;
  await append(installation.events, giftStream(gift), 'GiftIssued', {
    transaction_id: bought.transaction,
    index: 0,
    message_id: 'm',
    product_id: 'p1',
    brand_id: 'b1',
    value: 350,
    sender_id: 'u1',
    receiver,
    purchased_at: '2026-03-01T10:00:00.000Z',
    expires_on: '2027-03-01',
  });
  return gift;
}

async function projected(installation: Installation): Promise<void> {
  await installation.project({ projections: [FEED] });
  await caughtUp(installation);
}

async function caughtUp({ events, store }: Installation): Promise<void> {
  const end = (await events.end()) ?? '';
  const isBuilt = async (): Promise<boolean> =>
    (await store.active('feed')) === FEED.version && ((await store.checkpoint(checkpointName(FEED))) ?? '') >= end;
  await until(isBuilt, 'the feed to catch up');
}

async function entries({ store }: Installation): Promise<FeedEntry[]> {
  const found = await store.find<FeedEntry>(COLLECTION, { where: { id: { prefix: 'e:' } }, sort: [['id', 1]] });
  return found.map(({ body }) => body);
}

/** A gift to a number, redeemed, given to somebody else, notified, blocked twice. */
async function eventful(installation: Installation): Promise<string> {
  const { events } = installation;
  const bought = await buy(events, [{ phone_id: 'n1' }]);
  await append(events, transactionStream(bought.transaction), 'PaymentCharged', { amount: 350 });
  await append(events, 'phone-n1', 'PhoneTaken', { user_id: 'u2' });
  const gift = await issue(installation, bought, { phone_id: 'n1' });
  await append(events, notificationStream(gift), 'NotificationSent', { attempt: 1 });
  await redeem(events, gift);
  await append(events, giftStream(gift), 'GiftUnredeemed', {
    redemption_id: `r-${gift}`,
    location_id: 'l1',
    location_merchant_id: 'm1',
    merchant_id: null,
  });
  await append(events, giftStream(gift), 'GiftBlocked', { cause: 'support:T1', reason: '' });
  await append(events, giftStream(gift), 'GiftBlocked', { cause: 'support:T2', reason: '' });
  await append(events, giftStream(gift), 'GiftUnblocked', { cause: 'support:T1', reason: '' });
  await append(events, giftStream(gift), 'GiftReassigned', { receiver: { user_id: 'u3' }, reason: '' });
  await append(events, giftStream(gift), 'GiftExtended', { expires_on: '2028-01-01', voucher_expires_at: null });
  return gift;
}

const verification = ({ events, store }: Installation): VerifyOptions => ({
  events,
  store,
  projection: FEED,
  ...unwatched(),
  onDifference: () => undefined,
});

test(
  'each entry names those who might know of it when it happened',
  installed(async (installation) => {
    await eventful(installation);
    await projected(installation);
    assert.equal(
      (await entries(installation)).map(({ type, buyer, holder, merchant, data }) => [
        type,
        buyer ?? null,
        holder ?? null,
        merchant ?? null,
        data.blocked ?? null,
      ]),
      [
        ['transaction.created', 'u1', null, null, null],
        ['transaction.charged', 'u1', null, null, null],
        ['gift.issued', 'u1', 'phone:n1', null, null],
        ['gift.notified', 'u1', 'phone:n1', null, null],
        ['gift.redeemed', 'u1', 'phone:n1', 'm1', null],
        ['gift.unredeemed', 'u1', 'phone:n1', 'm1', null],
        ['gift.blocked', 'u1', 'phone:n1', null, true],
        ['gift.blocked', 'u1', 'phone:n1', null, true],
        ['gift.unblocked', 'u1', 'phone:n1', null, true],
        ['gift.reassigned', 'u1', 'user:u3', null, null],
        ['gift.reassigned', null, 'phone:n1', null, null],
        ['gift.extended', 'u1', 'user:u3', null, null],
      ],
    );
  }),
);

test(
  'a fold that is repeated after a crash makes the same entries, though what they rest on is newer',
  installed(async (installation) => {
    await eventful(installation);
    await projected(installation);
    const before = await installation.store.find(COLLECTION, { where: { id: { prefix: 'e:' } }, sort: [['id', 1]] });
    const known = async (id: string): Promise<FeedDocument | undefined> =>
      (await installation.store.get<FeedDocument>(COLLECTION, id))?.body;
    const again: object[] = [];
    for await (const { events } of installation.events.readAll(undefined, { types: FEED.types }))
      for (const event of events) again.push(...(await entryAgain(event, known)));
    assert.equal(
      again,
      before.map(({ body }) => body),
    );
  }),
);

/** With the documents that it rests on as they are by now. */
async function entryAgain(
  event: RecordedEvent,
  known: (id: string) => Promise<FeedDocument | undefined>,
): Promise<FeedDocument[]> {
  const context = await Promise.all((feedProjection.contextIds?.(event) ?? []).map(known));
  return feedProjection
    .documentIds(event)
    .flatMap((id, index) => (id.startsWith('e:') ? [feedProjection.evolve(undefined, event, id, index, context)] : []));
}

test(
  'a verification, whole or of a sample, finds nothing wrong, and a false entry',
  installed(async (installation) => {
    await eventful(installation);
    await projected(installation);
    const scratch = await openEmbeddedReadStore({ dir: mkdtempSync(join(installation.dir, 'scratch-')) });
    try {
      assert.is((await verifyAll({ ...verification(installation), scratch })).differences, 0);
    } finally {
      await scratch.close();
    }
    assert.is((await verifySample({ ...verification(installation), count: 100 })).differences, 0);
    const [found] = await installation.store.find<FeedEntry>(COLLECTION, { where: { holder: 'user:u3' }, limit: 1 });
    assert.ok(found);
    if (found === undefined) return;
    const { id, position, body } = found;
    const forged = { id, position, body: { ...body, holder: 'user:thief' } };
    assert.equal(await installation.store.correct(COLLECTION, [{ id, expected: position, document: forged }]), [true]);
    assert.is((await verifySample({ ...verification(installation), count: 100 })).differences, 1);
    const deps = depsFor(installation.events, installation.store, 'repairer');
    const outcome = led(deps, async () => repair(deps, FEED, [id], unwatched()), FEED);
    assert.equal(
      ((await outcome) ?? []).map((one) => one.outcome),
      ['repaired'],
    );
    assert.equal((await installation.store.get(COLLECTION, id))?.body, body);
  }),
);

test(
  'an event of a gift that no purchase led to is quarantined, and the feed goes on',
  installed(async (installation) => {
    await append(installation.events, giftStream('stray'), 'GiftExtended', { expires_on: '2028-01-01' });
    await append(installation.events, giftStream('stray2'), 'GiftIssued', { receiver: {} });
    await eventful(installation);
    await projected(installation);
    assert.is((await entries(installation)).filter((entry) => 'type' in entry).length, 12);
    const listed = await installation.store.records.list(`quarantine/${checkpointName(FEED)}/`);
    assert.is(listed.length, 3);
  }),
);

test.run();
