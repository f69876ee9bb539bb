/** Gifts that support replaces: once, whatever dies, and never beside money that went back. */
import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../src/commands/transact.js';
import { refundGifts } from '../../src/commands/refundGifts.js';
import { type ReplaceDeps, replaceGift } from '../../src/commands/replaceGift.js';
import { recordProviderEvent } from '../../src/commands/recordProviderEvent.js';
import type { GiftReplaced } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../../src/domain/purchase/events.js';
import type { ProviderEvent } from '../../src/domain/purchase/providerEvent.js';
import type { EventStore, Recorded, RecordedEvent } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { phone, type TestInstallation } from '../support/service/installation.js';
import type { Bought } from '../support/service/testLog.js';
import { installationSuite } from '../support/service/installationSuite.js';
import { crashable, lifeUntil } from '../support/faults/crashable.js';
import { everyKillPoint } from '../support/faults/killPoints.js';
import { refusal } from '../support/assertions/rejects.js';

const test = installationSuite('replaced gifts');
test.before.each(async ({ installation }) => {
  await installation.work();
});

const context = (correlationId = 'c', commandId: string = randomUUID()): CommandContext => ({
  commandId,
  correlationId,
  by: { user: 'sue' },
  now: new Date().toISOString(),
});
const desk = ({ events, subjects }: Pick<TestInstallation, 'events' | 'subjects'>): ReplaceDeps =>
  ({ events, gifts: { get: async () => undefined }, subjects }) as unknown as ReplaceDeps;
const LOST = { voided: false, reason: 'lost' };

/** Bought and issued, to a number each. */
async function issued(installation: TestInstallation, count = 1): Promise<Bought> {
  const bought = await installation.buy(Array.from({ length: count }, (_, n) => phone(n)));
  await installation.until(async () =>
    (await Promise.all(bought.giftIds.map((id) => installation.types(`gift-${id}`)))).every(
      (types) => types.length > 0,
    ),
  );
  return bought;
}
const redeemed = (installation: TestInstallation, giftId: string): Promise<void> =>
  installation.append(`gift-${giftId}`, 'GiftRedeemed', {
    redemption_id: 'r',
    location_id: 'l',
    location_merchant_id: 'm',
    merchant_id: 'm',
    brand_id: 'beans',
    product_id: 'coffee',
    value: 250,
  });
/** Purchases in place of a gift, as the log has them. */
const replacementsOf = async (installation: TestInstallation, giftId: string): Promise<GiftsPurchased['data'][]> =>
  (await installation.all('GiftsPurchased'))
    .map(({ data }) => data as GiftsPurchased['data'])
    .filter(({ replaces }) => replaces?.gift_id === giftId);
const giftIn = ({ seed }: GiftsPurchased['data']): string => deriveGiftIds(seed, 1)[0]?.gift_id ?? '';
const story = async (installation: TestInstallation, giftId: string): Promise<string> =>
  (await installation.types(`gift-${giftId}`)).join();
async function replaced(installation: TestInstallation, giftId: string): Promise<string> {
  const { own } = await replaceGift(desk(installation), giftId, context(), LOST);
  const { gift_id } = (own[0] as Recorded<GiftReplaced>).data.replaced_by;
  await installation.until(async () => (await installation.types(`gift-${gift_id}`)).length > 0);
  return gift_id;
}
async function refused(work: Promise<unknown>, code: string): Promise<void> {
  const [outcome] = await Promise.allSettled([work]);
  assert.ok(outcome?.status === 'rejected' && refusal(code)(outcome.reason), `${code}: ${JSON.stringify(outcome)}`);
}
let serial = 0;
const tell = async (installation: TestInstallation, { transactionId }: Bought, news: object): Promise<string> =>
  recordProviderEvent(
    installation.events,
    transactionId,
    { provider: 'simulated', charge_id: `ch_simulated_${transactionId}`, ...news } as ProviderEvent,
    { ...context(installation.correlationId, `stripe-evt_${++serial}`), by: { user: 'system:payment-provider' } },
  );
const DISPUTE = { dispute_id: 'dp_1', amount: 250, reason: 'fraudulent' };

test('issues a gift of the same price, product and receiver, charged to nobody, and notifies', async ({
  installation,
}) => {
  installation.process();
  const {
    giftIds: [giftId = ''],
    transactionId,
  } = await issued(installation);
  await redeemed(installation, giftId);
  const next = await replaced(installation, giftId);
  await installation.until(async () => (await installation.types(`notification-${next}`)).includes('NotificationSent'));
  const [old, fresh] = await Promise.all([giftId, next].map((id) => installation.events.read(`gift-${id}`)));
  const [before, after] = [old, fresh].map((events) => events?.[0]?.data as Record<string, unknown>);
  for (const field of ['product_id', 'brand_id', 'value', 'sender_id', 'receiver', 'expires_on'])
    assert.equal(after?.[field], before?.[field], field);
  assert.is(after?.['replacement'], true);
  assert.is(await story(installation, giftId), 'GiftIssued,GiftRedeemed,GiftReplaced');
  const [purchase] = await replacementsOf(installation, giftId);
  const own = await installation.events.read(transactionStream(purchase?.transaction_id ?? ''));
  assert.equal(
    own.map(({ type, metadata, data }) => [type, metadata.by.user, (data as { amount?: number }).amount]),
    [
      ['GiftsPurchased', 'sue', undefined],
      ['PaymentCharged', 'system:process-managers', 0],
    ],
  );
  assert.equal([purchase?.total, purchase?.replaces?.transaction_id], [0, transactionId]);
  assert.is((await installation.all('ChargeStarted')).length, 1, 'only the old purchase was charged');
});

test('replaces a gift once, however many ask at a time', async ({ installation }) => {
  installation.process();
  const [giftId = ''] = (await issued(installation)).giftIds;
  const same = context();
  const outcomes = await Promise.allSettled([
    ...Array.from({ length: 4 }, () => replaceGift(desk(installation), giftId, same, LOST)),
    ...Array.from({ length: 8 }, () => replaceGift(desk(installation), giftId, context(), LOST)),
  ]);
  const given = (await installation.all('GiftReplaced')).map(({ metadata }) => metadata.commandId);
  assert.is(given.length, 1);
  for (const outcome of outcomes)
    if (outcome.status === 'fulfilled') assert.is(outcome.value.own[0]?.metadata.commandId, given[0]);
    else assert.ok(refusal('gift_already_replaced')(outcome.reason), String(outcome.reason));
  const made = await replacementsOf(installation, giftId);
  await installation.until(async () =>
    (await Promise.all(made.map(({ transaction_id }) => installation.types(transactionStream(transaction_id))))).every(
      (types) => types.length === 2,
    ),
  );
  const charged = await Promise.all(
    made.map(async ({ transaction_id }) => (await installation.types(transactionStream(transaction_id)))[1]),
  );
  assert.is(charged.filter((type) => type === 'PaymentCharged').length, 1);
  await installation.until(
    async () =>
      (await Promise.all(made.map(async (one) => story(installation, giftIn(one))))).join('') === 'GiftIssued',
  );
});

for (const moment of ['before', 'after'] as const) {
  test(`ends what died ${moment} any effect of the command or the process`, async ({ installation }) => {
    const bought = await Promise.all(
      Array.from({ length: 24 }, async (_, n) => installation.buy([{}], { correlationId: `part-${n + 1}` })),
    );
    for (const { transactionId } of bought)
      await installation.append(transactionStream(transactionId), 'PaymentCharged', {
        amount: 250,
        provider: 'simulated',
        charge_id: `ch_simulated_${transactionId}`,
      });
    const issuer = installation.process();
    await installation.until(async () => (await installation.all('GiftIssued')).length === 24);
    await issuer.close();
    const deaths = await everyKillPoint(installation, async (part, at) => {
      const giftId = bought[at - 1]?.giftIds[0] ?? '';
      const life = lifeUntil(at, moment);
      const { events } = installation;
      const mortal: EventStore = {
        ...events,
        append: (...args) => life.effect(() => events.append(...args)),
        read: (...args) => life.alive(() => events.read(...args)),
      };
      await replaceGift(desk({ ...installation, events: mortal }), giftId, context(part.correlationId), LOST).catch(
        (error: unknown) => {
          assert.instance(error, UnavailableError);
        },
      );
      const doomed = crashable(part.deps, Math.max(1, at - life.effects), moment);
      const first = part.process({ ...doomed.deps, leaseMs: 90 });
      const made = await replacementsOf(installation, giftId);
      const isIssued = async (): Promise<boolean> =>
        (await Promise.all(made.map(async (one) => story(installation, giftIn(one))))).every(
          (one) => one === 'GiftIssued',
        );
      await installation.until(async () => doomed.dead || isIssued());
      const second = doomed.dead ? part.process({ leaseMs: 90 }) : undefined;
      await installation.until(isIssued);
      await Promise.all([first.close(), second?.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.is(await story(installation, giftId), made.length === 0 ? 'GiftIssued' : 'GiftIssued,GiftReplaced', where);
      const by = (await installation.events.read(`gift-${giftId}`)).at(-1) as RecordedEvent;
      if (made.length > 0) assert.equal([by.metadata.by.user, (by.data as { reason: string }).reason], ['sue', 'lost']);
      return life.dead || doomed.dead;
    });
    assert.ok(deaths >= 4, `it has ${deaths} effects`);
  });
}

test('is neither refunded nor replaced; its gift is not refunded', async ({ installation }) => {
  installation.process();
  const { giftIds, transactionId } = await issued(installation);
  const [giftId = ''] = giftIds;
  const next = await replaced(installation, giftId);
  const [purchase] = await replacementsOf(installation, giftId);
  const order = { voided: true, reason: 'x' };
  const refund = (id: string, ids?: readonly string[]): Promise<unknown> =>
    refundGifts(
      installation.events,
      context(installation.correlationId),
      { ...order, transactionId: id, ...(ids === undefined ? {} : { giftIds: ids }) },
      { ms: 5_000 },
    );
  await refused(replaceGift(desk(installation), next, context(), LOST), 'gift_is_replacement');
  await refused(replaceGift(desk(installation), giftId, context(), LOST), 'gift_already_replaced');
  await refused(refund(purchase?.transaction_id ?? ''), 'gift_is_replacement');
  await refused(refund(transactionId, giftIds), 'gift_already_cancelled');
  const { refund: whole } = (await refund(transactionId)) as { refund: { status: string; kept: object } };
  assert.equal([whole.status, whole.kept], ['nothing', { cancelled: [giftId] }]);
  assert.is((await installation.all('RefundStarted')).length, 0);
});

test('a refund and a replacement at once: money or a gift, never both', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 10);
  await Promise.all(
    bought.giftIds.flatMap((giftId) => [
      refundGifts(
        installation.events,
        context(installation.correlationId),
        { transactionId: bought.transactionId, giftIds: [giftId], voided: false, reason: 'x' },
        { ms: 5_000 },
      ).catch(() => undefined),
      replaceGift(desk(installation), giftId, context(installation.correlationId), LOST).catch(() => undefined),
    ]),
  );
  const stories = await Promise.all(bought.giftIds.map(async (id) => story(installation, id)));
  for (const one of stories) assert.match(one, /^GiftIssued,(GiftCancelled|GiftReplaced)$/);
  const refunds = stories.filter((one) => one.endsWith('GiftCancelled')).length;
  await installation.until(async () => (await installation.all('GiftsRefunded')).length === refunds);
});

test('a dispute of the old purchase blocks the replacement, and its end frees it', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation);
  const [giftId = ''] = bought.giftIds;
  await redeemed(installation, giftId);
  const next = await replaced(installation, giftId);
  await tell(installation, bought, { kind: 'dispute opened', ...DISPUTE });
  await installation.until(async () => (await installation.all('DisputeSettled')).length === 1);
  assert.is(await story(installation, next), 'GiftIssued,GiftBlocked');
  await tell(installation, bought, { kind: 'dispute closed', ...DISPUTE, outcome: 'won' });
  await installation.until(async () => (await installation.all('DisputeSettled')).length === 2);
  assert.is(await story(installation, next), 'GiftIssued,GiftBlocked,GiftUnblocked');
});

test('a gift whose money is disputed or went back is not replaced', async ({ installation }) => {
  installation.process();
  const [disputed, refunded] = [await issued(installation), await issued(installation)];
  for (const { giftIds } of [disputed, refunded]) await redeemed(installation, giftIds[0] ?? '');
  await tell(installation, disputed, { kind: 'dispute opened', ...DISPUTE });
  await tell(installation, refunded, { kind: 'refunded', total: 250 });
  await installation.until(
    async () => (await installation.all('DisputeSettled', 'ProviderRefundSettled')).length === 2,
  );
  for (const [bought, code] of [
    [disputed, 'gift_disputed'],
    [refunded, 'money_went_back'],
  ] as const)
    await refused(replaceGift(desk(installation), bought.giftIds[0] ?? '', context(), LOST), code);
});

test('money given back at the provider cancels the replacement in place of its gift', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 2);
  const [first = '', second = ''] = bought.giftIds;
  await redeemed(installation, first);
  const next = await replaced(installation, first);
  await tell(installation, bought, { kind: 'refunded', total: 500 });
  await installation.until(async () => (await installation.all('ProviderRefundSettled')).length === 1);
  assert.equal(
    [await story(installation, first), await story(installation, second), await story(installation, next)],
    ['GiftIssued,GiftRedeemed,GiftReplaced', 'GiftIssued,GiftCancelled', 'GiftIssued,GiftCancelled'],
  );
  assert.equal(
    (await installation.all('ProviderRefundSettled')).map(({ data }) => data),
    [{ total: 500, cancelled: 2, vouchered: 0, difference: 0 }],
  );
});

test.run();
