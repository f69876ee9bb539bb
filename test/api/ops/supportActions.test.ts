import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { plainTime } from '../../../src/entities/gifts.js';
import { accessStream } from '../../../src/domain/access.js';
import { ANSWERS } from '../../../src/domain/recordKeys.js';
import { buyOne, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { boughtBefore, daysFromNow } from '../../support/fixtures/pastPurchase.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('gifts cared for by support');
let service: Service;
test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

type What = 'resend' | 'reassign' | 'extend' | 'unredeem' | 'replace' | 'block' | 'unblock';
const care = async (gift: string, what: What, body: object = {}, key?: string): Promise<Reply> =>
  service.ask('POST', `/ops/gifts/${gift}/${what}`, {
    token: await service.userToken('sue'),
    body: { reason: 'ticket 7', ...body },
    ...(key === undefined ? {} : { key }),
  });
const done = async (gift: string, what: What, body: object = {}): Promise<Json> => {
  const reply = await care(gift, what, body);
  assert.equal(reply.status, 200, reply.text);
  return reply.json.data;
};
const look = async (gift: string, user = 'ann'): Promise<Json> =>
  (await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken(user) })).json.data;
const told = async (gift: string, times: number): Promise<Json[]> =>
  eventually(async () => {
    const events = (await service.events.read(`notification-${gift}`)) as Json[];
    return events.filter(({ type }) => type === 'NotificationSent').length === times ? events : undefined;
  });
/** Waits until so many tellings have ended: sent, or failed for want of an address. */
const ended = async (gift: string, times: number): Promise<true> =>
  eventually(
    async () =>
      (await service.events.read(`notification-${gift}`)).filter(
        ({ type }) => type === 'NotificationSent' || type === 'NotificationFailed',
      ).length === times,
  );
const typesOf = (data: Json): string[] => (data.events as Json[]).map(({ type }) => type as string);

test('notifies a receiver once more for each request, with who and why in the history', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await told(gift, 1);
  const first = await care(service.shortcodeOf(gift), 'resend', {}, 'resend-once');
  assert.deepEqual(
    [
      first.status,
      typesOf(first.json.data),
      first.json.data.events[0].data.attempt,
      first.json.data.events[0].data.gift_revision,
    ],
    [200, ['NotificationRequested'], 2, 0],
    first.text,
  );
  await told(gift, 2);
  const again = await care(service.shortcodeOf(gift), 'resend', {}, 'resend-once');
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json], ['true', first.json]);
  await done(gift, 'resend', { reason: 'deleted it again' });
  const events = await told(gift, 3);
  assert.deepEqual(
    events
      .filter(({ type }) => type === 'NotificationRequested')
      .map(({ data, metadata }) => [data.reason, metadata.by.user]),
    [
      ['ticket 7', 'sue'],
      ['deleted it again', 'sue'],
    ],
  );
  const history = await service.ask('GET', `/ops/gifts/${gift}/history`, { token: await service.userToken('aud') });
  assert.deepEqual(
    (history.json.data as Json[])
      .filter(({ type }) => type === 'NotificationRequested')
      .map(({ by, data }) => [by, data.reason]),
    [
      [{ user: 'sue', client: 'app', roles: ['support'] }, 'ticket 7'],
      [{ user: 'sue', client: 'app', roles: ['support'] }, 'deleted it again'],
    ],
  );
});

test('refuses a resend for a gift that has no receiver, or can’t be used', async () => {
  refused(await care(await buyOne(service), 'resend'), 409, 'gift has no receiver.');
  const used = await buyOne(service, 'latte', { user_id: 'bob' });
  await redeem(service, used);
  refused(await care(used, 'resend'), 405, 'gift already redeemed.');
  refused(
    await care(await boughtBefore(service, { receiver: { user_id: 'bob' } }), 'resend'),
    405,
    'gift is expired and cannot be redeemed.',
  );
});

test('gives a gift to another user or number; the previous receiver may not redeem it', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'dan' });
  await ended(gift, 1);
  const moved = await done(gift, 'reassign', { user_id: 'cat' });
  assert.deepEqual([moved.receiver, moved.receiver_id, typesOf(moved)], ['user', 'cat', ['GiftReassigned']]);
  assert.deepEqual(
    [(await look(gift, 'cat')).receiver_id, (await look(gift, 'ann')).receiver_id],
    ['cat', ''],
    'the buyer named another one',
  );
  refused(await redeem(service, gift, 'dan'), 403, 'Cannot redeem this gift.');
  await ended(gift, 2);

  const phoned = await done(gift, 'reassign', { phone_number: '07700 900002' });
  assert.deepEqual(
    [phoned.receiver, phoned.receiver_id, phoned.events[0].data.phone_number],
    ['phone number', null, '***'],
  );
  await told(gift, 1);
  assert.deepEqual(
    (await done(gift, 'reassign', { phone_number: ' \u200e+447700900002' })).events,
    [],
    'it has this receiver',
  );
  refused(await redeem(service, gift, 'cat'), 403, 'Cannot redeem this gift.');
  assert.equal((await redeem(service, gift, 'bob')).status, 201);
  refused(await care(gift, 'reassign', { user_id: 'dan' }), 405, 'gift already redeemed.');

  const records = JSON.stringify(await service.events.read(accessStream(new Date().toISOString())));
  assert.match(records, /POST \/ops\/gifts\/:giftId\/reassign/);
  assert.doesNotMatch(records, /7700.?900002/);
  assert.doesNotMatch(service.log.join(''), /7700.?900002/);
});

test('names the user who claimed a gift as its receiver', async () => {
  const gift = await buyOne(service);
  const shown = async (action: What): Promise<unknown[]> => {
    const { receiver, receiver_id } = await done(gift, action);
    return [receiver, receiver_id];
  };
  assert.deepEqual(await shown('block'), ['nobody', null]);
  await done(gift, 'unblock');
  const path = `/api/v2/gifts/${service.shortcodeOf(gift)}/claim`;
  assert.equal((await service.ask('POST', path, { token: await service.userToken('cat') })).status, 200);
  assert.deepEqual(await shown('block'), ['user', 'cat']);
});

test('refuses to reassign to none, two or unknown receivers, or once the code is out', async () => {
  const gift = await buyOne(service);
  refused(await care(gift, 'reassign'), 422, 'give one of user_id or phone_number');
  refused(
    await care(gift, 'reassign', { user_id: 'bob', phone_number: '07700 900002' }),
    422,
    'give one of user_id or phone_number',
  );
  for (const user_id of ['nobody', 'gone'])
    refused(await care(gift, 'reassign', { user_id }), 422, 'Receiver not found.');
  refused(await care(gift, 'reassign', { phone_number: '12' }), 422, 'Invalid phone number.');
  refused(await care(gift, 'reassign', { phone_number: '020 7946 0958' }), 422, 'Invalid phone number.');
  assert.equal(
    (await service.ask('POST', `/api/v2/gifts/${gift}/voucher`, { token: await service.userToken('ann') })).status,
    200,
  );
  refused(await care(gift, 'reassign', { user_id: 'bob' }), 409, 'a voucher code of this gift is out.');
  assert.deepEqual(
    (await service.events.read(`gift-${gift}`)).map(({ type }) => type),
    ['GiftIssued', 'VoucherAssigned'],
  );
});

test('an expired gift is valid again, its voucher with it', async () => {
  const gift = await boughtBefore(service);
  refused(await redeem(service, gift), 405, 'gift is expired and cannot be redeemed.');
  const until = daysFromNow(30).slice(0, 10);
  const extended = await done(gift, 'extend', { expiry_date: until });
  assert.deepEqual([extended.expiry_date, typesOf(extended)], [until, ['GiftExtended']]);
  assert.deepEqual((await done(gift, 'extend', { expiry_date: until })).events, []);
  const shown = await look(gift);
  assert.deepEqual([shown.expiry_date, shown.is_expired], [until, false]);
  assert.equal((await redeem(service, gift)).status, 201);

  const vouchered = await buyOne(service);
  const token = await service.userToken('ann');
  const vouchers = async (): Promise<{ made: Json; embedded: Json; v2: readonly Json[] }> => {
    const made = await service.ask('POST', `/api/v2/gifts/${vouchered}/voucher`, { token });
    const claimed = `/api/v2/gifts/${vouchered}/voucher/claimed`;
    const v2 = [
      (await service.ask('POST', claimed, { token, body: {} })).json,
      (await service.ask('GET', claimed, { token })).json,
    ];
    return {
      made: made.json.embedded.vouchers[0],
      embedded: (await service.ask('GET', `/api/v2/gifts/${vouchered}?embed=voucher.segment`, { token })).json.embedded
        .vouchers[0],
      v2,
    };
  };
  const before = await vouchers();
  assert.deepEqual(
    [before.made.updated_at, before.v2[0].dateModified],
    [before.made.created_at, before.v2[0].dateCreated],
  );
  const more = await done(vouchered, 'extend', { expiry_date: daysFromNow(900).slice(0, 10) });
  const after = await vouchers();
  const { at, data } = more.events[0];
  assert.deepEqual(after.embedded, {
    ...before.embedded,
    expiry_date: plainTime(data.voucher_expires_at),
    updated_at: plainTime(at),
  });
  assert.deepEqual(after.made, {
    ...before.made,
    expiry_date: plainTime(data.voucher_expires_at),
    updated_at: plainTime(at),
  });
  for (const [n, v2] of after.v2.entries())
    assert.deepEqual(v2, { ...before.v2[n], expiresAt: data.voucher_expires_at, dateModified: at });
  assert.ok(at > after.v2[0].dateCreated);
});

test('reverses a redemption for support, as the event, the merchant’s feed and the totals say', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  refused(await care(gift, 'unredeem'), 422, 'gift not redeemed.');
  assert.equal((await redeem(service, gift)).status, 201);
  const first = await care(gift, 'unredeem', { reason: 'not by the receiver' }, 'unredeem-once');
  assert.equal(first.status, 200, first.text);
  const [event] = first.json.data.events;
  assert.deepEqual(
    [first.json.data.gift_status, event.type, event.by.user, event.data.by_support, event.data.reason],
    ['sent', 'GiftUnredeemed', 'sue', true, 'not by the receiver'],
  );
  assert.equal((await look(gift)).gift_status, 'sent');
  const again = await care(gift, 'unredeem', { reason: 'not by the receiver' }, 'unredeem-once');
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json], ['true', first.json]);
  refused(await care(gift, 'unredeem'), 422, 'gift not redeemed.');

  const till = await service.userToken('till-coffee');
  const fed = await eventually(async () => {
    const { json } = await service.ask('GET', '/api/v2/events?limit=500', { token: till });
    return (json['data'] as Json[]).find(({ type, data }) => type === 'gift.unredeemed' && data.gift_id === gift);
  });
  assert.equal(fed.data.by_support, true);
  assert.doesNotMatch(JSON.stringify(fed), /receiver/);
  const totals = await service.ask('GET', '/ops/totals?check=1', { token: await service.userToken('aud') });
  const { sums, check } = totals.json as Json;
  assert.deepEqual([sums.unredeemed_by_support, check.agree], [1, true], totals.text);

  assert.equal((await redeem(service, gift)).status, 201, 'it is redeemed again');
});

test('gives another gift at no charge in place of one that somebody else redeemed, once', async () => {
  const [gift = ''] = (
    await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', [{ user_id: 'bob' }], { message: 'For you' }),
    })
  ).json['data'].gifts as string[];
  assert.equal((await redeem(service, gift)).status, 201);
  const before = await look(gift);
  const first = await care(gift, 'replace', { reason: 'redeemed by a thief' }, 'replace-once');
  assert.equal(first.status, 200, first.text);
  const { gift_status, replaced_by: next, events } = first.json.data;
  assert.deepEqual(
    [gift_status, typesOf({ events }), events[0].by.user, events[0].data.reason],
    ['redeemed', ['GiftReplaced'], 'sue', 'redeemed by a thief'],
  );
  const again = await care(gift, 'replace', { reason: 'redeemed by a thief' }, 'replace-once');
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json], ['true', first.json]);
  refused(await care(gift, 'replace'), 409, 'gift was replaced by another one already.');

  await told(next, 1);
  const after = await look(next, 'bob');
  for (const field of ['purchase_id', 'sender_id', 'expiry_date', 'receiver_id', 'is_expired'])
    assert.equal(after[field], (await look(gift, 'bob'))[field], field);
  assert.deepEqual([after.gift_status, before.gift_status], ['sent', 'redeemed']);
  assert.equal((await look(next)).receiver_id, '', 'the buyer did not name the receiver of this one');
  const message = await service.ask('GET', `/api/v2/gifts/${next}?embed=message`, {
    token: await service.userToken('bob'),
  });
  assert.match(message.text, /For you/);
  refused(
    await care(next, 'replace'),
    409,
    'gift was given at no charge in place of another one: it is neither replaced nor refunded.',
  );
  const refund = await service.ask('POST', `/ops/transactions/${after.transaction_id}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'x' },
  });
  refused(refund, 409, 'gift was given at no charge in place of another one: it is neither replaced nor refunded.');
  assert.equal((await redeem(service, next)).status, 201);

  assert.equal((await care(gift, 'unredeem')).status, 200);
  assert.equal((await look(gift)).gift_status, 'cancelled', 'the old one is not worth a second time');
  refused(await redeem(service, gift), 405, 'gift is cancelled and cannot be redeemed.');

  const bought = await service.ask('GET', `/api/v2/transactions/${after.transaction_id}`, {
    token: await service.userToken('ann'),
  });
  const { retail, status, replaces } = bought.json['data'] as Json;
  assert.deepEqual([retail, status, replaces], ['0.00', 'charged', gift], bought.text);
  const fed = await eventually(async () => {
    const { json } = await service.ask('GET', '/api/v2/events?limit=500', { token: await service.userToken('ann') });
    const shown = json['data'] as Json[];
    const found = ['gift.replaced', 'transaction.created'].map((type) =>
      shown.find(({ type: one, data }) => one === type && (data.replaced_by === next || data.replaces === gift)),
    );
    return found.includes(undefined) ? undefined : found;
  });
  assert.doesNotMatch(JSON.stringify(fed), /thief/);
  const history = await service.ask('GET', `/ops/gifts/${next}/history`, { token: await service.userToken('aud') });
  const [purchase] = history.json.data as Json[];
  assert.deepEqual(
    [purchase?.type, purchase?.by.user, purchase?.data.reason, purchase?.data.replaces.gift_id],
    ['GiftsPurchased', 'sue', 'redeemed by a thief', gift],
  );
  const totals = await service.ask('GET', '/ops/totals?check=1', { token: await service.userToken('aud') });
  const { sums, check } = totals.json as Json;
  assert.deepEqual([sums.replaced, sums.replaced_value, check.agree], [1, 350, true], totals.text);
});

test('a code that is out must be worthless before its gift is replaced', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  assert.equal(
    (await service.ask('POST', `/api/v2/gifts/${gift}/voucher`, { token: await service.userToken('bob') })).status,
    200,
  );
  refused(await care(gift, 'replace'), 409, 'gift has a voucher: say voided once its code is worthless.');
  const { gift_status, replaced_by } = await done(gift, 'replace', { voided: true });
  assert.deepEqual([gift_status, (await look(replaced_by)).voucher_id], ['cancelled', null]);
});

test('not to a day that is past, earlier, too far or none', async () => {
  const gift = await buyOne(service);
  const wrong = 'expiry_date must be a day to come, later than the present one and at most ten years ahead.';
  for (const expiry_date of [daysFromNow(-1).slice(0, 10), daysFromNow(5).slice(0, 10), '2999-01-01'])
    refused(await care(gift, 'extend', { expiry_date }), 422, wrong);
  refused(
    await care(gift, 'extend', { expiry_date: '2027-02-30' }),
    422,
    'expiry_date must be a date such as 2027-05-04',
  );
  refused(await care(gift, 'extend'), 422, 'expiry_date is required');
});

test('a blocked gift can’t be used until each cause has been freed', async () => {
  const gift = await buyOne(service);
  assert.deepEqual((await done(gift, 'block')).blocked_by, ['support']);
  assert.deepEqual((await done(gift, 'block', { ticket: 'T-1' })).blocked_by, ['support', 'support:T-1']);
  assert.deepEqual((await done(gift, 'block')).events, [], 'this cause blocks it already');
  refused(await redeem(service, gift), 405, 'gift is blocked.');
  assert.deepEqual((await done(gift, 'unblock')).blocked_by, ['support:T-1']);
  assert.deepEqual((await done(gift, 'unblock', { ticket: 'T-2' })).events, []);
  refused(await redeem(service, gift), 405, 'gift is blocked.');
  assert.deepEqual((await done(gift, 'unblock', { ticket: 'T-1', reason: 'found' })).blocked_by, []);
  assert.equal((await redeem(service, gift)).status, 201);
  const history = await service.ask('GET', `/ops/gifts/${gift}/history`, { token: await service.userToken('aud') });
  assert.deepEqual(
    (history.json.data as Json[])
      .filter(({ type }) => type.endsWith('locked'))
      .map(({ type, by, data }) => [type, by.user, data.ticket, data.reason]),
    [
      ['GiftBlocked', 'sue', undefined, 'ticket 7'],
      ['GiftBlocked', 'sue', 'T-1', 'ticket 7'],
      ['GiftUnblocked', 'sue', undefined, 'ticket 7'],
      ['GiftUnblocked', 'sue', 'T-1', 'found'],
    ],
  );
  for (const { data } of await service.events.read(accessStream(new Date().toISOString())))
    assert.doesNotMatch(JSON.stringify(data), /T-[12]"/);
  refused(await care(gift, 'block', { ticket: 'a b' }), 422, 'ticket must be 1 to 64 of A-Z, a-z, 0-9, ., _, # and -');
});

test('a repeated call is answered alike, though nothing that support wrote is stored', async () => {
  const gift = await buyOne(service);
  const wrote = { ticket: 'T-of-nobody-else', reason: 'a reason of nobody else' };
  const first = await care(gift, 'block', wrote, 'block-once');
  await done(gift, 'unblock', wrote);
  const again = await care(gift, 'block', wrote, 'block-once');
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
  assert.deepEqual(again.json, first.json);
  refused(
    await care(gift, 'block', { reason: 'another' }, 'block-once'),
    422,
    'Idempotency key already used with another request.',
  );
  const store = await service.openStore();
  try {
    const kept = JSON.stringify(await store.records.list(ANSWERS, 1_000));
    assert.match(kept, new RegExp(gift), 'the record of the call');
    assert.doesNotMatch(kept, /of-nobody-else|of nobody else/);
  } finally {
    await store.close();
  }
  const records = (await service.events.read(accessStream(new Date().toISOString()))) as Json[];
  const last = records.findLast(({ data }) => data.asked.giftId === gift);
  assert.equal(last?.data.reason, wrote.reason, 'a repeat is recorded with its reason');
});

test('a declined gift is as good as cancelled', async () => {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(reply.status, 402);
  const transaction = (reply.headers.get('location') ?? '').split('/')[4] ?? '';
  const list = await service.ask('GET', `/api/v2/transactions/${transaction}/gifts`, {
    token: await service.userToken('ann'),
  });
  const gift = list.json.data[0].id as string;
  const blocked = await done(gift, 'block');
  assert.deepEqual([blocked.gift_status, blocked.events], ['cancelled', []]);
  refused(
    await care(gift, 'extend', { expiry_date: daysFromNow(900).slice(0, 10) }),
    405,
    'gift is cancelled and cannot be redeemed.',
  );
});

test('unknown gifts, no reason, no role', async () => {
  const gift = await buyOne(service);
  const bodies: Readonly<Record<What, object>> = {
    resend: {},
    reassign: { user_id: 'bob' },
    extend: { expiry_date: daysFromNow(900).slice(0, 10) },
    unredeem: {},
    replace: {},
    block: {},
    unblock: {},
  };
  for (const [what, body] of Object.entries(bodies) as [What, object][]) {
    for (const unknown of ['nothing', 'feedfeedfeedfeedfeed']) {
      refused(await care(unknown, what, body), 404, 'gift not found');
      refused(await care(unknown, what, { ...body, reason: '' }), 404, 'gift not found');
    }
    refused(await care(gift, what, { ...body, reason: '' }), 422, 'reason must not be empty');
    for (const user of ['aud', 'ann'])
      refused(
        await service.ask('POST', `/ops/gifts/${gift}/${what}`, {
          token: await service.userToken(user),
          body: { reason: 'x', ...body },
        }),
        403,
        'Forbidden.',
      );
  }
  assert.deepEqual(
    (await service.events.read(`gift-${gift}`)).map(({ type }) => type),
    ['GiftIssued'],
  );
});

test.run();
