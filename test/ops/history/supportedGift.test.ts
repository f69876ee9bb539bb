import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { supportedGift } from '../../../src/ops/history/supportedGift.js';
import { blockGift, unblockGift } from '../../../src/commands/blockGift.js';
import type { SupportDeps } from '../../../src/commands/supportAction.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { giftsPurchased, SEED } from '../../support/fixtures/giftEvents.js';

const test = suite('audit/supportedGift');
const GIFT = '5f2c9d6a1b7e4c80d3a1';
const context = (commandId: string) => ({
  commandId,
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
});

test('a gift as support left it: a repeated command is answered as it was', async () => {
  const events = memoryEvents();
  const data = {
    transaction_id: 't',
    index: 0,
    message_id: 'm',
    product_id: 'p',
    brand_id: 'b',
    value: 100,
    sender_id: 'ann',
    receiver: { phone_id: 'h' },
    purchased_at: '2026-05-01T00:00:00.000Z',
    expires_on: '2027-05-01',
  };
  events.given(`gift-${GIFT}`, { type: 'GiftIssued', data });
  const deps: SupportDeps = { events, gifts: { get: async () => undefined } as unknown as SupportDeps['gifts'] };
  const { own } = await blockGift(deps, GIFT, context('first'), { reason: 'stolen' });
  const first = await supportedGift(deps, GIFT, own);
  assert.equal(
    [first.gift_status, first.receiver, first.receiver_id, first.blocked_by, first.events.map(({ type }) => type)],
    ['sent', 'phone number', null, ['support'], ['GiftBlocked']],
  );
  await unblockGift(deps, GIFT, context('second'), { reason: 'found' });
  const again = await blockGift(deps, GIFT, context('first'), { reason: 'stolen' });
  assert.is(again.replayed, true);
  assert.equal(await supportedGift(deps, GIFT, again.own), first);
  assert.equal((await supportedGift(deps, GIFT, [])).blocked_by, [], 'where nothing was recorded: as it stands');
});

test('shows each event of a gift issued by a support action with its own position', async () => {
  const events = memoryEvents();
  const [gift = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
  events.given('transaction-t1', giftsPurchased(), {
    type: 'PaymentCharged',
    data: { amount: 350, provider: 'p', charge_id: 'c' },
  });
  const document = {
    transaction_id: 't1',
    index: 0,
    message_id: 'm',
    receiver: {},
    updated_at: '2026-01-01T00:00:00.000Z',
  };
  const deps: SupportDeps = {
    events,
    gifts: { get: async () => document, reached: async () => true } as unknown as SupportDeps['gifts'],
  };
  const shown = await supportedGift(
    deps,
    gift,
    (await blockGift(deps, gift, context('first'), { reason: 'stolen' })).own,
  );
  assert.equal(
    shown.events.map(({ type, position }) => [type, position]),
    (await events.read(`gift-${gift}`)).map(({ type, position }) => [type, position]),
  );
  assert.is(new Set(shown.events.map(({ position }) => position)).size, 2);
  const again = await blockGift(deps, gift, context('first'), { reason: 'stolen' });
  assert.equal(await supportedGift(deps, gift, again.own), shown);
});

test.run();
