import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory, type HistoryOptions } from '../../../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import { fold } from '../../../../src/domain/decider.js';
import { giftStream } from '../../../../src/domain/gift/events.js';
import { giftAggregate } from '../../../../src/domain/gift/state.js';
import { giftsProjection, type GiftDocument } from '../../../../src/projections/gifts.js';
import { collectionOf } from '../../../../src/runtime/readmodels/projection.js';
import { startProjector } from '../../../../src/runtime/readmodels/projector.js';
import { transactionsProjection } from '../../../../src/projections/transactions.js';
import {
  append,
  buy,
  contents,
  newInstallation,
  newEvent,
  redeem,
  settled,
  silent,
  type Bought,
  type Installation,
} from '../../../support/fixtures/projecting.js';

const test = suite('rebuilding');

/** A step in the life of an installation. `gift`: one of those bought so far, modulo. */
type Step = Change | { readonly kind: 'restart' } | { readonly kind: 'wait' };
type Change =
  | { readonly kind: 'buy'; readonly count: number }
  | { readonly kind: 'nonsense' }
  | { readonly kind: 'redeem' | 'unredeem' | 'claim' | 'cancel' | 'charge'; readonly gift: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('buy' as const), count: fc.integer({ min: 1, max: 40 }) }),
  fc.record({
    kind: fc.constantFrom(
      'redeem' as const,
      'unredeem' as const,
      'claim' as const,
      'cancel' as const,
      'charge' as const,
    ),
    gift: fc.nat(1_000),
  }),
  fc.constant({ kind: 'nonsense' as const }),
  fc.constant({ kind: 'restart' as const }),
  fc.constant({ kind: 'wait' as const }),
);

async function take({ events }: Installation, bought: Bought[], one: Change): Promise<void> {
  if (one.kind === 'buy') {
    bought.push(
      await buy(
        events,
        Array.from({ length: one.count }, () => ({})),
      ),
    );
    return;
  }
  if (one.kind === 'nonsense') {
    await append(events, 'gift-00000000000000000000', 'GiftClaimed', { user_id: 'u1' });
    return;
  }
  const purchase = bought[one.gift % Math.max(1, bought.length)];
  const gift = purchase?.gifts[one.gift % purchase.gifts.length];
  if (purchase === undefined || gift === undefined) return;
  if (one.kind === 'redeem') await redeem(events, gift);
  // A gift that is not redeemed can't be unredeemed: its quarantine must come out the same, too.
  if (one.kind === 'unredeem') await append(events, giftStream(gift), 'GiftUnredeemed', { redemption_id: `r-${gift}` });
  if (one.kind === 'claim') await append(events, giftStream(gift), 'GiftClaimed', { user_id: 'u5' });
  if (one.kind === 'cancel') await append(events, giftStream(gift), 'GiftCancelled', { reason: 'refunded' });
  if (one.kind === 'charge')
    await append(events, `transaction-${purchase.transaction}`, 'PaymentCharged', {
      amount: 1,
      provider: 'p',
      charge_id: 'c',
    });
}

test('a rebuild makes the documents that were folded step by step through restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      const installation = await newInstallation();
      try {
        let projector = await installation.project();
        const bought: Bought[] = [];
        for (const one of steps) {
          if (one.kind === 'wait') await settled(projector, installation.events);
          else if (one.kind === 'restart') {
            await projector.close();
            projector = await installation.project();
          } else await take(installation, bought, one);
        }
        await settled(projector, installation.events);
        const anew = mkdtempSync(join(installation.dir, 'anew-'));
        const store = await openEmbeddedReadStore({ dir: anew });
        const rebuilding = await startProjector({
          events: installation.events,
          store,
          projections: [giftsProjection, transactionsProjection],
          logger: silent,
          holder: 'anew',
        });
        await settled(rebuilding, installation.events);
        for (const collection of [giftsProjection, transactionsProjection].map(collectionOf))
          assert.equal(await contents(installation.store, collection), await contents(store, collection));
        const listed = (kept: ReturnType<typeof projector.kept>) =>
          kept.map(({ quarantined }) => quarantined.map(({ eventId }) => eventId ?? '').sort());
        assert.equal(listed(projector.kept()), listed(rebuilding.kept()));
        await rebuilding.close();
        await store.close();
      } finally {
        await installation.destroy();
      }
    }),
    { numRuns: 8 },
  );
});

test('a generated history folds to what its streams say', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'history-'));
  const prologue: NonNullable<HistoryOptions['prologue']> = (add) => {
    add('product-p0', [newEvent('ProductChanged', {})]);
  };
  const made = generateHistory({ dir, events: 6_000, seed: 7, sampleSize: 300, prologue });
  const events = await openEmbeddedEventStore({ dir });
  const store = await openEmbeddedReadStore({ dir });
  const projector = await startProjector({
    events,
    store,
    projections: [giftsProjection, transactionsProjection],
    logger: silent,
    holder: 'h',
  });
  try {
    await settled(projector, events);
    assert.ok(made.events >= 6_000 && made.events < 7_000, String(made.events));
    assert.is(await store.count(collectionOf(giftsProjection), {}), made.gifts);
    assert.is(await store.count(collectionOf(transactionsProjection), {}), made.purchases);
    assert.ok(Math.abs(made.redeemed / made.gifts - 0.5) < 0.05, 'half of them redeemed');
    assert.ok(Math.abs(made.unredeemed / made.gifts - 0.1) < 0.03, 'a tenth unredeemed');
    const statuses = new Set<string>();
    for (const { id, status, receiver } of made.sample) {
      statuses.add(status);
      const document = (await store.get<GiftDocument>(collectionOf(giftsProjection), id))?.body;
      const gift = fold(giftAggregate, (await events.read(giftStream(id))) as never);
      if (gift.status === 'none' || document === undefined) throw new Error(`gift ${id} is missing`);
      const redemption = gift.redemptions.at(-1);
      assert.equal(document.receiver, gift.issued.receiver);
      assert.is(document.receiver.user_id, receiver);
      assert.is(document.message_id, gift.issued.message_id);
      assert.is(document.redemption?.id, redemption?.id);
      assert.is(document.redemption?.redeemed, redemption?.redeemed);
      assert.is(status, redemption === undefined ? 'issued' : redemption.redeemed ? 'redeemed' : 'unredeemed');
    }
    assert.is(statuses.size, 3);
  } finally {
    await projector.close();
    await store.close();
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test.run();
