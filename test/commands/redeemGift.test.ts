import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { cancelRedemption } from '../../src/commands/cancelRedemption.js';
import { idFrom } from '../../src/commands/commandIds.js';
import type { CommandContext } from '../../src/commands/transact.js';
import { type GiftDeps, loadGift } from '../../src/commands/loadGift.js';
import { loadToRedeem, redeemGift } from '../../src/commands/redeemGift.js';
import { unredeemGift } from '../../src/commands/unredeemGift.js';
import { type GiftEvent, giftStream } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import type { NewEvent } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { UserDocument } from '../../src/projections/accounts.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { giftIssued, giftRedeemed as redeemed, giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';

const test = suite('redeeming gifts');
const GIFT = 'b1946ac92492d2347c62';
const NOW = '2026-11-21T10:15:30.000Z';
const LATER = '2026-11-21T10:15:37.500Z';
const TIME = '1a1fd9a99d0';
const PART = idFrom('k', 'redemption');
const TILL = {
  entry: 'user',
  id: 'till',
  merchant_id: 'coffee',
  permissions: ['redeem', 'unredeem'],
  roles: [],
} as unknown as UserDocument;

const contextOf = (commandId: string, now = NOW): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'till' },
  now,
});
const issued = giftIssued({
  transaction_id: 't1',
  receiver: {},
  purchased_at: '2026-11-20T00:00:00.000Z',
  expires_on: '2027-01-01',
});

/** A log with the gift, and what happened to it. */
function installation(...then: readonly GiftEvent[]): { readonly deps: GiftDeps; readonly events: MemoryEvents } {
  const events = memoryEvents();
  events.given(giftStream(GIFT), issued, ...then);
  const catalogue = {
    current: () => ({
      stores: new Map([['soho', { brand_id: 'bean' }]]),
      brands: new Map([['bean', { merchant_id: 'coffee' }]]),
      validFor: () => true,
    }),
  } as unknown as GiftDeps['catalogue'];
  return { deps: { events, gifts: {} as GiftDeps['gifts'], catalogue }, events };
}
async function redeem(deps: GiftDeps, context: CommandContext, user = TILL): ReturnType<typeof redeemGift> {
  return redeemGift(deps, await loadToRedeem(deps, GIFT, user, context.now), user, context, 'soho');
}
async function cancel(deps: GiftDeps, commandPart = PART, context = contextOf('c')): Promise<string> {
  const loaded = await loadGift(deps, GIFT, TILL, context.now);
  return (await cancelRedemption(deps, loaded, TILL, context, commandPart)).event.type;
}
async function unredeem(deps: GiftDeps, redemptionId: string, command = 'u'): ReturnType<typeof unredeemGift> {
  return unredeemGift(deps, await loadGift(deps, GIFT, TILL, NOW), TILL, contextOf(command), redemptionId);
}
const idsIn = ({ log }: MemoryEvents): [string, string][] =>
  log.flatMap(({ type, data }) => {
    const id = (data as { readonly redemption_id?: string }).redemption_id;
    return id === undefined ? [] : [[type, id]];
  });

test('makes the id of the command’s time and its id, and keeps it for every repetition', async () => {
  const { deps, events } = installation();
  const first = await redeem(deps, contextOf('k'));
  assert.equal(first.redemption.redemption_id, TIME + PART);
  const again = await redeem(deps, contextOf('k', LATER));
  assert.deepEqual([again.redemption, again.event, again.replayed], [first.redemption, first.event, true]);
  assert.deepEqual(idsIn(events), [['GiftRedeemed', TIME + PART]]);
});

test('redeems once where an answer is lost, and is asked again at another time', async () => {
  const { deps, events } = installation();
  const tried: (readonly NewEvent[])[] = [];
  const lossy = {
    ...events,
    async append(...[stream, batch, expected]: Parameters<MemoryEvents['append']>) {
      tried.push(batch);
      if (tried.length === 1) await events.append(stream, batch, expected);
      throw new UnavailableError('no answer', { outcomeUnknown: true });
    },
  };
  await assert.rejects(redeem({ ...deps, events: lossy }, contextOf('k')), UnavailableError);
  assert.ok(tried.length > 1);
  for (const batch of tried) assert.deepEqual(batch, tried[0], 'the same event, with its id and its time');
  assert.equal((await redeem(deps, contextOf('k', LATER))).redemption.redemption_id, TIME + PART);
  assert.deepEqual(idsIn(events), [['GiftRedeemed', TIME + PART]]);
});

test('redeems once where two runs of a command decide at different times', async () => {
  const { deps, events } = installation();
  events.beforeAppend = async () => {
    events.beforeAppend = () => undefined;
    await redeem(deps, contextOf('k', LATER));
  };
  const { redemption, replayed } = await redeem(deps, contextOf('k'));
  assert.deepEqual([redemption.redemption_id, replayed], [`1a1fd9ab71c${PART}`, true]);
  assert.deepEqual(idsIn(events), [['GiftRedeemed', `1a1fd9ab71c${PART}`]]);
});

test('cancels what the command made, whether its id has a time or is an older one', async () => {
  for (const id of [TIME + PART, PART]) {
    const { deps, events } = installation(redeemed(id));
    assert.equal(await cancel(deps), 'GiftUnredeemed');
    assert.equal(await cancel(deps, PART, contextOf('again', LATER)), 'GiftUnredeemed');
    assert.deepEqual(idsIn(events), [
      ['GiftRedeemed', id],
      ['GiftUnredeemed', id],
    ]);
  }
});

test('meets a redemption that was made while it was cancelled', async () => {
  const { deps, events } = installation();
  events.beforeAppend = async () => {
    events.beforeAppend = () => undefined;
    await redeem(deps, contextOf('k', LATER));
  };
  assert.equal(await cancel(deps), 'GiftUnredeemed');
  assert.deepEqual(
    idsIn(events).map(([type]) => type),
    ['GiftRedeemed', 'GiftUnredeemed'],
  );
});

test('a void has the command part alone, and keeps the command out at any time', async () => {
  const { deps, events } = installation();
  assert.equal(await cancel(deps), 'RedemptionVoided');
  for (const now of [NOW, LATER]) await assert.rejects(redeem(deps, contextOf('k', now)), refusal('redemption_voided'));
  assert.equal(await cancel(deps, PART, contextOf('again', LATER)), 'RedemptionVoided');
  await redeem(deps, contextOf('another'));
  assert.deepEqual(idsIn(events), [
    ['RedemptionVoided', PART],
    ['GiftRedeemed', TIME + idFrom('another', 'redemption')],
  ]);
});

test('reverses by the whole id alone', async () => {
  const { deps } = installation(redeemed(TIME + PART));
  await assert.rejects(unredeem(deps, PART), refusal('redemption_not_found'));
  assert.equal((await unredeem(deps, TIME + PART)).redeemed.data.redemption_id, TIME + PART);
  const older = installation(redeemed(PART));
  await assert.rejects(unredeem(older.deps, TIME + PART), refusal('redemption_not_found'));
  assert.equal((await unredeem(older.deps, PART)).redeemed.data.redemption_id, PART);
});

test('lets a user redeem a gift fifty times, reverse each, and leave it to other users', async () => {
  const { deps } = installation();
  for (let n = 1; n <= 50; n++) {
    await redeem(deps, contextOf(`r${n}`));
    await unredeem(deps, 'latest', `u${n}`);
  }
  await assert.rejects(redeem(deps, contextOf('r51')), refusal('redeemed_too_often'));
  assert.equal((await redeem(deps, contextOf('r50'))).replayed, true, 'a repeat is answered as before');
  const other = { ...TILL, id: 'till-2' };
  await redeem(deps, { ...contextOf('other'), by: { user: 'till-2' } }, other);
  await unredeem(deps, 'latest', 'last');
});

test('voids fifty keys of a gift for a user, and reverses and voids for others after that', async () => {
  const { deps, events } = installation();
  for (let n = 1; n <= 50; n++) assert.equal(await cancel(deps, `part${n}`, contextOf(`c${n}`)), 'RedemptionVoided');
  await assert.rejects(cancel(deps, 'part51', contextOf('c51')), refusal('voided_too_often'));
  assert.equal(await cancel(deps, 'part50', contextOf('again')), 'RedemptionVoided', 'it is void already');
  assert.equal(await cancel(deps, 'part51', { ...contextOf('o'), by: { user: 'till-2' } }), 'RedemptionVoided');
  await redeem(deps, contextOf('k'));
  assert.equal(await cancel(deps, PART, contextOf('reversal')), 'GiftUnredeemed');
  assert.equal(events.log.filter(({ type }) => type === 'RedemptionVoided').length, 51);
});

test('answers a cancellation with the void or the reversal of its own redemption', async () => {
  const voided = (id: string): GiftEvent => ({ type: 'RedemptionVoided', data: { redemption_id: id } }) as GiftEvent;
  const other = `1a1fd9a99d1${idFrom('other', 'redemption')}`;
  const reversed = { ...redeemed(other).data } as { redemption_id: string };
  const { deps, events } = installation(
    voided('another part'),
    redeemed(other),
    { type: 'GiftUnredeemed', data: reversed } as GiftEvent,
    redeemed(TIME + PART),
  );
  const about = async (part: string): Promise<unknown> => {
    const { event } = await cancelRedemption(deps, await loadGift(deps, GIFT, TILL, NOW), TILL, contextOf(part), part);
    return [event.type, (event.data as { readonly redemption_id: string }).redemption_id];
  };
  assert.deepEqual(await about(PART), ['GiftUnredeemed', TIME + PART]);
  assert.deepEqual(await about(idFrom('new', 'redemption')), ['RedemptionVoided', idFrom('new', 'redemption')]);
  assert.equal(events.log.length, 7);
});

test('reverses the latest redemption, and shows that one', async () => {
  const { deps } = installation(redeemed('r1'), { type: 'GiftUnredeemed', data: redeemed('r1').data } as GiftEvent);
  await redeem(deps, contextOf('k'));
  const { redeemed: shown, event } = await unredeem(deps, 'latest');
  assert.deepEqual([shown.type, shown.data.redemption_id], ['GiftRedeemed', TIME + PART]);
  assert.equal((event.data as { readonly redemption_id: string }).redemption_id, TIME + PART);
});

test('the owner redeems at any merchant’s location, and a till only at its own', async () => {
  const stores = new Map([
    ['soho', { brand_id: 'bean' }],
    ['abroad', { brand_id: 'other' }],
    ['lost', { brand_id: 'gone' }],
  ]);
  const brands = new Map([
    ['bean', { merchant_id: 'coffee' }],
    ['other', { merchant_id: 'tea' }],
  ]);
  const catalogue = {
    current: () => ({ stores, brands, validFor: (_: object, id: string) => id === 'coffee' }),
  } as unknown as GiftDeps['catalogue'];
  let reads = 0;
  /** The location's merchant, and who may reverse it. */
  const at = async (user: UserDocument, location: string): Promise<unknown> => {
    const events = memoryEvents();
    reads = 0;
    events.given(giftStream(GIFT), { ...issued, data: { ...issued.data, receiver: { phone_id: 'n' } } });
    events.given('phone-n', { type: 'PhoneTaken', data: { user_id: 'bob' } });
    const read: MemoryEvents['read'] = async (stream, options) => {
      if (stream === 'phone-n') reads += 1;
      return events.read(stream, options);
    };
    const deps = { events: { ...events, read }, gifts: {} as GiftDeps['gifts'], catalogue };
    const context = { ...contextOf('k'), by: { user: user.id } };
    const { redemption } = await redeemGift(deps, await loadToRedeem(deps, GIFT, user, NOW), user, context, location);
    return [redemption.location_merchant_id, redemption.merchant_id];
  };
  const bob = { ...TILL, id: 'bob' };
  const customer = { ...bob, merchant_id: null, permissions: [] };
  assert.deepEqual(await at(TILL, 'soho'), ['coffee', 'coffee']);
  assert.equal(reads, 0, 'who owns the gift does not matter');
  assert.deepEqual(await at(bob, 'soho'), ['coffee', 'coffee'], 'as the till');
  assert.deepEqual(await at(bob, 'abroad'), ['tea', null], 'as the owner, where the gift is not valid');
  assert.equal(reads, 1);
  assert.deepEqual(await at(customer, 'abroad'), ['tea', null], 'without a merchant');
  assert.equal(reads, 1);
  await assert.rejects(at(TILL, 'abroad'), refusal('invalid_location'));
  for (const location of ['lost', 'never'])
    for (const user of [customer, TILL]) await assert.rejects(at(user, location), refusal('invalid_location'));
  assert.equal(reads, 0);
});

test('issues a paid gift with its first redemption', async () => {
  const events = memoryEvents();
  const [ids] = deriveGiftIds(SEED, 1);
  events.given(transactionStream('t1'), giftsPurchased(), {
    type: 'PaymentCharged',
    data: { amount: 350, provider: 'p', charge_id: 'c' },
  });
  const gifts = { get: async () => ({ transaction_id: 't1', index: 0 }) } as unknown as GiftDeps['gifts'];
  const deps = { ...installation().deps, events, gifts };
  const context = contextOf('k');
  const loaded = await loadToRedeem(deps, ids?.gift_id ?? '', TILL, context.now);
  const { event, redemption } = await redeemGift(deps, loaded, TILL, context, 'soho');
  assert.deepEqual([event.type, redemption.redemption_id], ['GiftRedeemed', TIME + PART]);
  assert.deepEqual(
    events.log.slice(2).map(({ type }) => type),
    ['GiftIssued', 'GiftRedeemed'],
  );
});

test('counts only voids against the voids of a user', async () => {
  const { deps } = installation();
  for (let n = 1; n <= 26; n++) {
    await redeem(deps, contextOf(`r${n}`));
    await unredeem(deps, 'latest', `u${n}`);
  }
  assert.equal(await cancel(deps), 'RedemptionVoided');
});

test.run();
