import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import { giftOf } from '../../src/commands/giftSource.js';
import { transactionIdOf } from '../../src/commands/purchaseGifts.js';
import { decideExchange, type ReplaceDeps, replaceGift } from '../../src/commands/replaceGift.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import { type GiftReplaced, giftStream, type Receiver } from '../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { phoneSubject, purchaseSubject } from '../../src/domain/personalFields.js';
import { type GiftsPurchased, transactionStream } from '../../src/domain/purchase/events.js';
import { NO_TEXT } from '../../src/lib/seal.js';
import type { Recorded } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { openText, sealText } from '../../src/runtime/personal/sealedTexts.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { giftIssued, giftsPurchased, SEED } from '../support/fixtures/giftEvents.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

const test = suite('commands/replace gift');
const context = (commandId: string): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
});
const [GIFT = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
const subjects = memorySubjects();
const [PHONE = '', PURCHASE = ''] = await subjects.ids([phoneSubject('+447700900123'), purchaseSubject('t')]);
const MESSAGE = await sealText(subjects, PURCHASE, 'Enjoy');
const user = (id: string, more: object = {}): DomainEvent => ({
  type: 'UserAdded',
  data: { id, username: id, active: true, roles: [], ...more },
});

/** A gift of its receiver, bought with a message. */
function installation(
  receiver: Receiver = { user_id: 'bob' },
  { after = [], bought = {} }: { readonly after?: readonly DomainEvent[]; readonly bought?: object } = {},
): { readonly deps: ReplaceDeps; readonly events: MemoryEvents } {
  const events = memoryEvents();
  for (const account of [user('bob'), user('off', { active: false }), user('staff', { roles: ['support'] })])
    events.given(`user-${(account.data as { readonly id: string }).id}`, account);
  events.given(
    transactionStream('t'),
    giftsPurchased({
      transaction_id: 't',
      expires_on: '2026-06-30',
      message: MESSAGE,
      receivers: [receiver],
      ...bought,
    }),
    { type: 'PaymentCharged', data: { amount: 350, provider: 'p', charge_id: 'ch_1' } },
    ...after,
  );
  events.given(giftStream(GIFT), giftIssued({ receiver, expires_on: '2026-12-31' }));
  return { deps: { events, subjects, gifts: { get: async () => undefined } } as unknown as ReplaceDeps, events };
}
const replace = (deps: ReplaceDeps, command = 'k', voided = false): ReturnType<typeof replaceGift> =>
  replaceGift(deps, GIFT, context(command), { voided, reason: 'lost' });
const purchaseIn = ({ log }: MemoryEvents): GiftsPurchased['data'] =>
  log.findLast(({ type }) => type === 'GiftsPurchased')?.data as GiftsPurchased['data'];
const added = ({ log }: MemoryEvents): string[] =>
  log.slice(log.findIndex(({ type }) => type === 'GiftIssued') + 1).map(({ type }) => type);

test('buys the same gift at no charge, and gives the old one for it', async () => {
  const { deps, events } = installation();
  const { own, replayed } = await replace(deps);
  assert.equal(replayed, false);
  assert.deepEqual(added(events), ['GiftsPurchased', 'GiftReplaced']);
  const { seed, message, ...purchase } = purchaseIn(events);
  assert.deepEqual(purchase, {
    transaction_id: transactionIdOf(context('k')),
    reason: 'lost',
    replaces: { gift_id: GIFT, transaction_id: 't' },
    buyer_id: 'ann',
    product_id: 'latte',
    brand_id: 'bean',
    product_name: 'Latte',
    sale_price: 350,
    total: 0,
    payment_reference: '',
    expires_on: '2026-12-31',
    receivers: [{ user_id: 'bob' }],
  });
  assert.match(seed, /^[0-9a-f]{64}$/);
  assert.equal(await openText(subjects, message), 'Enjoy');
  assert.notEqual(message.split('.')[0], MESSAGE.split('.')[0], 'under a key of its own');
  const [next] = deriveGiftIds(seed, 1);
  const replaced_by = { gift_id: next?.gift_id, transaction_id: purchase.transaction_id };
  assert.deepEqual(own[0]?.data, { replaced_by, reason: 'lost' });
});

test('the same command replaces once, also where it ended in between', async () => {
  const { deps, events } = installation();
  events.beforeAppend = (stream) => {
    if (stream === giftStream(GIFT)) throw new UnavailableError('down');
  };
  await assert.rejects(replace(deps), UnavailableError);
  assert.deepEqual(added(events), ['GiftsPurchased']);
  events.beforeAppend = () => undefined;
  for (let n = 0; n < 2; n++) assert.equal((await replace(deps)).replayed, true);
  assert.deepEqual(added(events), ['GiftsPurchased', 'GiftReplaced']);
  await assert.rejects(replace(deps, 'other'), refusal('gift_already_replaced'));
});

/** The command ends in between; then the process declines its purchase, since the gift is disputed for a while. */
async function declinedInBetween(events: MemoryEvents, deps: ReplaceDeps): Promise<void> {
  events.beforeAppend = (stream) => {
    if (stream === giftStream(GIFT)) throw new UnavailableError('down');
  };
  await assert.rejects(replace(deps), UnavailableError);
  events.beforeAppend = () => undefined;
  events.given(transactionStream(purchaseIn(events).transaction_id), DECLINED);
}
const DECLINED = { type: 'PaymentDeclined', data: { provider: 'replacement', code: 'gift_disputed' } };
/** The purchases of the log, each with the events after it, and the one that the old gift was given for. */
function exchanged({ log }: MemoryEvents): { readonly purchases: string[][]; readonly given: unknown } {
  const ids = log.filter(({ type, stream }) => type === 'GiftsPurchased' && stream !== 'transaction-t');
  const replaced = log.find(({ type }) => type === 'GiftReplaced') as Recorded<GiftReplaced>;
  const { replaced_by } = replaced.data;
  return {
    purchases: ids.map(({ stream }) => log.filter((one) => one.stream === stream).map(({ type }) => type)),
    given: ids.findIndex(({ stream }) => stream === transactionStream(replaced_by.transaction_id)),
  };
}

test('gives no gift for a purchase that was declined: a repeat makes another one', async () => {
  const { deps, events } = installation();
  await declinedInBetween(events, deps);
  const { own } = await replace(deps);
  const expected = { purchases: [['GiftsPurchased', 'PaymentDeclined'], ['GiftsPurchased']], given: 1 };
  assert.deepEqual(exchanged(events), expected);
  const [next] = deriveGiftIds(purchaseIn(events).seed, 1);
  assert.equal((own[0] as Recorded<GiftReplaced>).data.replaced_by.gift_id, next?.gift_id);
  assert.equal((await replace(deps)).replayed, true);
  assert.deepEqual(exchanged(events), expected);
});

test('gives no gift for a purchase that is declined while the command runs', async () => {
  const { deps, events } = installation();
  const { read } = events;
  const late: ReplaceDeps['events'] = {
    ...events,
    async read(stream, ...more) {
      const bought = events.log.filter(({ type }) => type === 'GiftsPurchased').length;
      if (stream === giftStream(GIFT) && bought === 2 && !added(events).includes('PaymentDeclined'))
        events.given(transactionStream(purchaseIn(events).transaction_id), DECLINED);
      return read(stream, ...more);
    },
  };
  assert.equal((await replace({ ...deps, events: late })).replayed, false);
  assert.deepEqual(exchanged(events), {
    purchases: [['GiftsPurchased', 'PaymentDeclined'], ['GiftsPurchased']],
    given: 1,
  });
});

test('names the client of the first purchase, its reference, and a void code', async () => {
  const { deps, events } = installation({}, { bought: { reference_id: 'order 7', message: NO_TEXT } });
  const [first] = events.log.filter(({ type }) => type === 'GiftsPurchased');
  Object.assign(first?.metadata.by ?? {}, { client: 'shop' });
  events.given(giftStream(GIFT), {
    type: 'VoucherAssigned',
    data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 's', expires_at: '2026-12-31T23:59:59.999Z' },
  });
  await assert.rejects(replace(deps, 'x'), refusal('gift_code_out'));
  await replace(deps, 'plain', true);
  const none = await subjects.find([purchaseSubject(transactionIdOf(context('plain')))]);
  assert.deepEqual(none, [undefined], 'no key for no message');
  const { replaces, reference_id, message, receivers } = purchaseIn(events);
  assert.deepEqual(replaces, { gift_id: GIFT, transaction_id: 't', client_id: 'shop', voided: true });
  assert.deepEqual([reference_id, message, receivers], ['order 7', NO_TEXT, [{}]]);
});

test('gives the replacement to the person who had the number then', async () => {
  const { deps, events } = installation({ phone_id: PHONE });
  events.given(`phone-${PHONE}`, { type: 'PhoneTaken', data: { user_id: 'bob' } });
  await replace(deps);
  assert.deepEqual(purchaseIn(events).receivers, [{ user_id: 'bob' }]);
  const free = installation({ phone_id: PHONE });
  await replace(free.deps);
  assert.deepEqual(purchaseIn(free.events).receivers, [{ phone_id: PHONE }], 'nobody had it');
});

test('gives none to a person who is gone, or of staff', async () => {
  for (const user_id of ['off', 'staff', 'nobody']) {
    const { deps, events } = installation({ user_id });
    await assert.rejects(replace(deps), refusal('receiver_not_found'));
    assert.deepEqual(added(events), []);
  }
});

test('gives none where money of the purchase went back, or may go back', async () => {
  const refunded = { provider: 'p', charge_id: 'ch_1', amount: 100, total: 100 };
  const dispute = { provider: 'p', dispute_id: 'd', amount: 350, reason: 'fraudulent' };
  for (const [type, data, code] of [
    ['RefundedAtProvider', refunded, 'money_went_back'],
    ['DisputeOpened', dispute, 'gift_disputed'],
  ] as const) {
    const { deps, events } = installation(undefined, { after: [{ type, data }] });
    await assert.rejects(replace(deps), refusal(code));
    assert.deepEqual(added(events), []);
  }
});

test('gives none where money went back while it was replaced', async () => {
  const { deps, events } = installation();
  events.beforeAppend = () => {
    events.beforeAppend = () => undefined;
    const data = { provider: 'p', charge_id: 'ch_1', amount: 100, total: 100 };
    events.given(transactionStream('t'), { type: 'RefundedAtProvider', data });
  };
  await assert.rejects(replace(deps), refusal('money_went_back'));
  assert.equal(added(events).includes('GiftReplaced'), false);
});

test('refuses a gift that nobody bought', async () => {
  const { deps } = installation();
  await assert.rejects(
    replaceGift(deps, 'ff'.repeat(10), context('k'), { voided: false, reason: 'x' }),
    refusal('gift_not_found'),
  );
});

test('gives the replacement of a reassigned gift to the number’s holder at the reassignment', async () => {
  const { deps, events } = installation();
  const on = async (at: string, stream: string, type: string, data: object): Promise<unknown> =>
    events.append(
      stream,
      [{ id: at, type, at, data, metadata: { commandId: 'g', correlationId: 'g', by: { user: 'g' } } }],
      'any',
    );
  events.given('user-new', user('new'));
  await on('2026-02-01T00:00:00.000Z', `phone-${PHONE}`, 'PhoneTaken', { user_id: 'off' });
  await on('2026-03-10T00:00:00.000Z', `phone-${PHONE}`, 'PhoneGivenUp', { user_id: 'off' });
  await on('2026-03-11T00:00:00.000Z', `phone-${PHONE}`, 'PhoneTaken', { user_id: 'new' });
  const reassigned = { transaction_id: 't', receiver: { phone_id: PHONE }, reason: 'x' };
  await on('2026-04-01T00:00:00.000Z', giftStream(GIFT), 'GiftReassigned', reassigned);
  await replace(deps);
  assert.deepEqual(purchaseIn(events).receivers, [{ user_id: 'new' }]);
});

test('decides nothing for a gift that was exchanged for the same purchase, whatever its money did since', async () => {
  const { deps, events } = installation();
  await replace(deps);
  const dispute = { provider: 'p', dispute_id: 'd', amount: 350, reason: 'fraudulent' };
  events.given(transactionStream('t'), { type: 'DisputeOpened', data: dispute });
  const found = await giftOf(await events.read(giftStream(GIFT)), () => {
    throw new Error('it is issued');
  });
  assert.deepEqual(await decideExchange(events, found, purchaseIn(events), context('later').now), []);
  const other = { ...purchaseIn(events), transaction_id: 'other' };
  await assert.rejects(decideExchange(events, found, other, context('x').now), refusal('gift_already_replaced'));
});

test.run();
