import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import { claimGift } from '../../src/commands/claimGift.js';
import type { CommandContext } from '../../src/commands/transact.js';
import { type GiftDeps, handleGift, hasRun, loadGift } from '../../src/commands/loadGift.js';
import { phoneStream } from '../../src/domain/account.js';
import { type GiftEvent, giftStream } from '../../src/domain/gift/events.js';
import { refuseUnlessMayRedeem } from '../../src/domain/gift/decisions.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { type PurchaseEvent, transactionStream } from '../../src/domain/purchase/events.js';
import type { NewEvent } from '../../src/ports/eventStore.js';
import type { UserDocument } from '../../src/projections/accounts.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { refusal } from '../support/assertions/rejects.js';
import { giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';

const test = suite('loading gifts');
const NOW = '2026-03-01T00:00:00.000Z';
const context = (commandId: string = randomUUID()): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'sue' },
  now: NOW,
});
const user = (id: string): UserDocument =>
  ({ entry: 'user', id, merchant_id: null, permissions: [], roles: [] }) as unknown as UserDocument;

const [, IDS] = deriveGiftIds(SEED, 2);
const { gift_id: GIFT, message_id: MESSAGE } = IDS ?? { gift_id: '', message_id: '' };
const bought = giftsPurchased({ total: 700, receivers: [{ user_id: 'bob' }, {}] });
const charged: PurchaseEvent = { type: 'PaymentCharged', data: { amount: 700, provider: 'p', charge_id: 'c' } };
const declined: PurchaseEvent = { type: 'PaymentDeclined', data: { provider: 'p', code: 'lost_card' } };
const claimed = (user_id: string): GiftEvent => ({ type: 'GiftClaimed', data: { user_id } });
const issued: GiftEvent = {
  type: 'GiftIssued',
  data: {
    transaction_id: 't1',
    index: 1,
    message_id: MESSAGE,
    product_id: 'latte',
    brand_id: 'bean',
    value: 350,
    sender_id: 'ann',
    receiver: {},
    purchased_at: '2026-01-01T00:00:00.000Z',
    expires_on: '2027-01-01',
  },
};

/** A log with one purchase of two gifts, and the read model's answer about the second. */
function installation(...then: readonly PurchaseEvent[]): { deps: GiftDeps; events: MemoryEvents } {
  const events = memoryEvents();
  events.given(transactionStream('t1'), bought, ...then);
  const document = {
    transaction_id: 't1',
    index: 1,
    message_id: MESSAGE,
    receiver: {},
    updated_at: '2026-01-01T00:00:00.000Z',
  };
  const gifts = { get: async (id: string) => (id === GIFT ? document : undefined) } as GiftDeps['gifts'];
  return { deps: { events, gifts, catalogue: {} as GiftDeps['catalogue'] }, events };
}
const lifeOf = (events: MemoryEvents): string[] =>
  events.log.filter(({ stream }) => stream === giftStream(GIFT)).map(({ type }) => type);
async function claim(deps: GiftDeps, by: string, given = context()): ReturnType<typeof claimGift> {
  return claimGift(deps, await loadGift(deps, GIFT, user(by), NOW), user(by), given);
}

test('issues a paid gift in the append of the first command about it', async () => {
  const { deps, events } = installation(charged);
  const appends: (readonly NewEvent[])[] = [];
  events.beforeAppend = (_stream, appended) => void appends.push(appended);
  const { own } = await claim(deps, 'eve');
  assert.deepEqual(
    appends.map((appended) => appended.map(({ type }) => type)),
    [['GiftIssued', 'GiftClaimed']],
  );
  assert.deepEqual([own[0]?.data, own[1]?.data], [issued.data, { user_id: 'eve' }]);
  await assert.rejects(claim(deps, 'dan'), refusal('gift_already_claimed'));
});

test('leaves a paid gift unissued where a command decides nothing', async () => {
  const { deps, events } = installation(charged);
  const eve = user('eve');
  const { own, replayed } = await handleGift(deps, await loadGift(deps, GIFT, eve, NOW), eve, context(), () => []);
  assert.deepEqual([own, replayed, lifeOf(events)], [[], false, []]);
});

test('loads a gift that is not issued as its purchase has it, with its issue once it is paid for', async () => {
  const loaded = async (...then: readonly PurchaseEvent[]): Promise<unknown> =>
    (await loadGift(installation(...then).deps, GIFT, user('eve'), NOW)).found.state;
  const gift = { status: 'issued', issued: issued.data, redemptions: [] };
  assert.deepEqual(await loaded(), { gift, payment: 'pending' });
  assert.deepEqual(await loaded(charged), { gift, payment: 'charged', issue: issued });
});

test('finds no gift whose purchase the log lacks', async () => {
  const { deps } = installation(charged);
  const document = await deps.gifts.get(GIFT);
  const gifts = { get: async () => ({ ...document, transaction_id: 'lost' }) } as unknown as GiftDeps['gifts'];
  await assert.rejects(loadGift({ ...deps, gifts }, GIFT, user('eve'), NOW), refusal('gift_not_found'));
});

test('refuses an unpaid or declined gift and leaves it unissued', async () => {
  const [pending, refused] = [installation(), installation(declined)];
  await assert.rejects(claim(pending.deps, 'eve'), refusal('gift_not_paid'));
  await assert.rejects(claim(refused.deps, 'eve'), refusal('gift_cancelled'));
  assert.deepEqual([lifeOf(pending.events), lifeOf(refused.events)], [[], []]);
});

test('reports a document whose purchase has no such gift', async () => {
  const { deps } = installation(charged);
  const document = await deps.gifts.get(GIFT);
  const gifts = { get: async () => ({ ...document, index: 2 }) } as unknown as GiftDeps['gifts'];
  await assert.rejects(loadGift({ ...deps, gifts }, GIFT, user('eve'), NOW), /its purchase does not have/);
});

test('decides again on the winner’s state after a lost race', async () => {
  const { deps, events } = installation(charged);
  events.beforeAppend = () => {
    events.beforeAppend = () => undefined;
    events.given(giftStream(GIFT), issued, claimed('dan'));
  };
  await assert.rejects(claim(deps, 'eve'), refusal('gift_already_claimed'));
  assert.deepEqual(lifeOf(events), ['GiftIssued', 'GiftClaimed']);
});

test('knows an earlier run by its own events alone', async () => {
  const { deps } = installation(charged);
  const [mine, another] = [context(), context()];
  assert.equal(hasRun(await loadGift(deps, GIFT, user('eve'), NOW), mine), false);
  await claim(deps, 'eve', mine);
  const loaded = await loadGift(deps, GIFT, user('eve'), NOW);
  assert.deepEqual([hasRun(loaded, mine), hasRun(loaded, another)], [true, false]);
  assert.equal((await claim(deps, 'eve', mine)).replayed, true);
});

test('owns a reassigned gift by the number’s holder at the reassignment', async () => {
  const { deps, events } = installation(charged);
  const on = async (at: string, stream: string, type: string, data: object): Promise<void> =>
    void (await events.append(
      stream,
      [
        {
          id: randomUUID(),
          type,
          at,
          data,
          metadata: { commandId: 'given', correlationId: 'given', by: { user: 'given' } },
        },
      ],
      'any',
    ));
  await on('2025-06-01T00:00:00.000Z', phoneStream('h'), 'PhoneTaken', { user_id: 'old' });
  events.given(giftStream(GIFT), issued);
  await on('2026-02-01T00:00:00.000Z', phoneStream('h'), 'PhoneGivenUp', { user_id: 'old' });
  await on('2026-02-01T00:00:01.000Z', phoneStream('h'), 'PhoneTaken', { user_id: 'new' });
  await on('2026-02-02T00:00:00.000Z', giftStream(GIFT), 'GiftReassigned', {
    transaction_id: 't1',
    receiver: { phone_id: 'h' },
    phone_number: '+447700900001',
    reason: 'wrong person',
  });
  const redeeming = async (id: string): Promise<void> => {
    const { gift, facts } = await loadGift(deps, GIFT, user(id), NOW);
    refuseUnlessMayRedeem(gift, facts);
  };
  await redeeming('new');
  for (const other of ['old', 'ann']) await assert.rejects(redeeming(other), refusal('cannot_redeem'));
});

/** Counts the reads of phones’ streams. */
function watched(events: MemoryEvents): { readonly events: MemoryEvents; readonly phones: string[] } {
  const phones: string[] = [];
  const read: MemoryEvents['read'] = async (stream, options) => {
    if (stream.startsWith('phone-')) phones.push(stream);
    return events.read(stream, options);
  };
  return { events: { ...events, read }, phones };
}

test('decides on the number’s holder as of the state that is decided on, and reads it once for each', async () => {
  const { deps, events } = installation(charged);
  events.given(giftStream(GIFT), issued);
  events.given(phoneStream('h'), { type: 'PhoneTaken', data: { user_id: 'new' } });
  const { phones, events: reading } = watched(events);
  const owners: (string | undefined)[] = [];
  const bob = user('bob');
  const run = async (): Promise<unknown> =>
    handleGift(
      { ...deps, events: { ...reading, append: (...of) => events.append(...of) } },
      await loadGift({ ...deps, events: reading }, GIFT, bob, NOW),
      bob,
      context(),
      (_, facts) => {
        owners.push(facts.phoneOwner);
        return [claimed('bob') as never];
      },
    );
  events.beforeAppend = () => {
    events.beforeAppend = () => undefined;
    const receiver = { phone_id: 'h' };
    events.given(giftStream(GIFT), {
      type: 'GiftReassigned',
      data: { transaction_id: 't1', receiver, reason: 'x' },
    } as GiftEvent);
  };
  await run();
  assert.deepEqual([owners, phones], [[undefined, 'new'], ['phone-h']]);
  await run();
  assert.deepEqual([owners.slice(2), phones.slice(1)], [['new'], ['phone-h']], 'as it was loaded');
});

test.run();
