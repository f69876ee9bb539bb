/** Scheduled purchases over HTTP, with a clock that is put forward (docs/api/purchases.md#scheduled-sending). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventOf } from '../../support/service/testLog.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/scheduled sending');
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const INVALID =
  'send_at must be a time with its zone, to come, at most 366 days ahead and no later than the gifts expire.';
const realNow = Date.now;
let ahead = 0;
let service: Service;

test.before(async () => {
  Date.now = () => realNow() + ahead;
  service = await startService({ split: false, env: { ACCESS_TOKEN_TTL: '86400' } });
  // Logins are refused once records that count them have expired for one thread and not for another.
  await Promise.all(['ann', 'bob', 'cat', 'sue', 'aud'].map(async (user) => service.userToken(user)));
});
test.after(async () => {
  await unharmed(service);
  await service.close();
  Date.now = realNow;
});

const inHours = (hours: number): string => new Date(Date.now() + hours * HOUR_MS).toISOString();

async function ask(method: string, path: string, body?: object, user = 'ann', key?: string): Promise<Reply> {
  const reply = await service.ask(method, path, {
    token: await service.userToken(user),
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { key }),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
  checked(answerOf(reply));
  return reply;
}

interface Scheduled {
  readonly id: string;
  readonly path: string;
  readonly gifts: readonly string[];
  readonly sendAt: string;
}

async function schedule(receivers: readonly object[], sendAt = inHours(1)): Promise<Scheduled> {
  const body = purchaseOf('latte', receivers, { sendAt });
  const reply = await ask('POST', '/api/v2/transactions', body);
  assert.equal(reply.status, 201, reply.text);
  const { id, gifts, send_at, status } = reply.json.data;
  assert.deepEqual([send_at, status], [sendAt, 'charged'], 'the money is taken at once');
  return { id, gifts, sendAt, path: `/api/v2/transactions/${id}` };
}

const change = async ({ path }: Scheduled, send_at: string | null, key?: string): Promise<Reply> =>
  ask('PATCH', path, { send_at }, 'ann', key);
const typesIn = async (stream: string): Promise<string[]> =>
  (await service.events.read(stream)).map(({ type }) => type);
const sentIn = async ({ gifts }: Scheduled): Promise<number> =>
  (await Promise.all(gifts.map(async (id) => typesIn(notificationStream(id)))))
    .flat()
    .filter((type) => type === 'NotificationSent').length;
const finished = async ({ id }: Scheduled): Promise<boolean> =>
  (await typesIn(transactionStream(id))).includes('SendFinished');
const heldBy = async (user: string): Promise<string[]> =>
  (await ask('GET', '/api/v2/gifts?as=holder&limit=100', undefined, user)).json.data.map(({ id }: Json) => id);
const fedTo = async (user: string, gift: string): Promise<string[]> =>
  (await ask('GET', '/api/v2/events?limit=500', undefined, user)).json.data
    .filter(({ data }: Json) => data.gift_id === gift)
    .map(({ type }: Json) => type);

async function untilSent(scheduled: Scheduled): Promise<void> {
  await eventually(async () => (await finished(scheduled)) && (await sentIn(scheduled)) === scheduled.gifts.length);
}

/** What is due by now is done: a purchase that was due later is sent. */
async function roundOver(): Promise<void> {
  const later = await schedule([{ user_id: 'bob' }], inHours(1));
  ahead += HOUR_MS + 1;
  await untilSent(later);
}

test('receivers are notified, and find their gifts, at the time that the buyer named, once', async () => {
  const scheduled = await schedule([{ user_id: 'bob' }, { phone_number: '07700900002' }]);
  const [gift = ''] = scheduled.gifts;
  await eventually(async () => (await typesIn(giftStream(gift))).includes('GiftIssued'));
  assert.equal((await heldBy('bob')).includes(gift), false);
  assert.deepEqual(await fedTo('bob', gift), []);
  assert.deepEqual(await fedTo('ann', gift), ['gift.issued']);
  const held = (await ask('GET', `/api/v2/gifts/${gift}`)).json.data;
  assert.deepEqual([held.send_at, held.sent_date, held.gift_status], [scheduled.sendAt, '', 'sent']);

  ahead += HOUR_MS + 1;
  await untilSent(scheduled);
  assert.equal((await heldBy('bob')).includes(gift), true);
  assert.deepEqual((await fedTo('bob', gift)).slice(0, 1), ['gift.released']);
  assert.notEqual((await ask('GET', `/api/v2/gifts/${gift}`)).json.data.sent_date, '');
  assert.equal('send_at' in (await ask('GET', `/api/v2/gifts/${gift}`, undefined, 'bob')).json.data, false);
  await roundOver();
  assert.equal(await sentIn(scheduled), 2);
  refused(await change(scheduled, inHours(1)), 409, 'nothing to send: it was sent, or never scheduled.');
});

test('the buyer changes the time, sends at once, or sends nothing until another time is named', async () => {
  const later = await schedule([{ user_id: 'bob' }]);
  const key = 'later';
  const changed = await change(later, '2100-01-01T00:00:00Z', key);
  refused(changed, 422, INVALID);
  assert.equal(changed.headers.get('error-field'), 'send_at');
  const [one, again] = [await change(later, inHours(5), 'k1'), await change(later, inHours(5), 'k2')];
  assert.equal(one.status, 200, one.text);
  assert.ok(one.json.data.send_at <= again.json.data.send_at);
  const none = await schedule([{ user_id: 'bob' }]);
  assert.equal((await change(none, null)).json.data.send_at, null);
  assert.equal((await ask('GET', none.path)).json.data.send_at, null);
  const now = await schedule([{ user_id: 'bob' }]);
  const { send_at } = (await change(now, 'now')).json.data;
  assert.ok(send_at <= inHours(0), send_at);
  await untilSent(now);
  await roundOver();
  assert.deepEqual([await sentIn(later), await sentIn(none)], [0, 0]);
  assert.equal((await heldBy('bob')).includes(none.gifts[0] ?? ''), false);
  assert.equal((await change(none, inHours(1))).status, 200);
  ahead += 6 * HOUR_MS;
  await untilSent(later);
  await untilSent(none);
});

test('a gift refunded before its time is told to nobody', async () => {
  const scheduled = await schedule([{ user_id: 'bob' }, { user_id: 'bob' }]);
  const [kept = '', cancelled = ''] = scheduled.gifts;
  await eventually(async () => (await typesIn(giftStream(cancelled))).includes('GiftIssued'));
  const refund = await ask(
    'POST',
    `/ops${scheduled.path.slice('/api/v2'.length)}/refund`,
    { reason: 'r', gift_ids: [cancelled] },
    'sue',
  );
  assert.equal(refund.status, 200, refund.text);
  ahead += HOUR_MS + 1;
  await eventually(async () => finished(scheduled));
  await eventually(async () => (await typesIn(notificationStream(kept))).includes('NotificationSent'));
  assert.deepEqual(await typesIn(notificationStream(cancelled)), []);
  assert.equal((await typesIn(giftStream(cancelled))).includes('GiftReleased'), false);
  assert.equal((await fedTo('bob', cancelled)).length, 0);
  const held = await heldBy('bob');
  assert.deepEqual([held.includes(kept), held.includes(cancelled)], [true, false]);
  const { sent_date, gift_status } = (await ask('GET', `/api/v2/gifts/${cancelled}`)).json.data;
  assert.deepEqual([sent_date, gift_status], ['', 'cancelled']);
});

test('the new receiver of a reassigned gift waits for its time as well; support resends nothing before', async () => {
  const scheduled = await schedule([{ user_id: 'cat' }]);
  const [gift = ''] = scheduled.gifts;
  await eventually(async () => (await typesIn(giftStream(gift))).includes('GiftIssued'));
  const resent = await ask('POST', `/ops/gifts/${gift}/resend`, { reason: 'r' }, 'sue');
  refused(resent, 409, 'a notification is still under way.');
  assert.equal((await ask('POST', `/ops/gifts/${gift}/reassign`, { reason: 'r', user_id: 'bob' }, 'sue')).status, 200);
  await roundOver();
  await untilSent(scheduled);
  const [started] = await service.events.read(notificationStream(gift));
  assert.deepEqual([started?.type, await sentIn(scheduled)], ['NotificationStarted', 1]);
  assert.equal((await heldBy('bob')).includes(gift), true);
  assert.deepEqual(await fedTo('cat', gift), []);
});

test('of a gift that is blocked at its time the receiver is notified once the block ends', async () => {
  const scheduled = await schedule([{ user_id: 'bob' }]);
  const [gift = ''] = scheduled.gifts;
  await eventually(async () => (await typesIn(giftStream(gift))).includes('GiftIssued'));
  assert.equal((await ask('POST', `/ops/gifts/${gift}/block`, { reason: 'r' }, 'sue')).status, 200);
  await roundOver();
  assert.equal(await finished(scheduled), true);
  assert.deepEqual(await typesIn(notificationStream(gift)), []);
  assert.equal((await ask('POST', `/ops/gifts/${gift}/unblock`, { reason: 'r' }, 'sue')).status, 200);
  await untilSent(scheduled);
  assert.deepEqual(await typesIn(notificationStream(gift)), ['NotificationStarted', 'NotificationSent']);
});

test('who has the id may use the gift before its time, and is then told no more', async () => {
  const scheduled = await schedule([{ user_id: 'bob' }]);
  const [gift = ''] = scheduled.gifts;
  assert.equal((await ask('GET', `/api/v2/gifts/${gift}`, undefined, 'bob')).status, 200);
  assert.equal((await redeem(service, gift, 'bob')).status, 201);
  await roundOver();
  await eventually(async () => (await typesIn(notificationStream(gift))).length > 0);
  const [failed = { type: '', data: {} }, ...more] = await service.events.read(notificationStream(gift));
  assert.equal(failed.type, 'NotificationFailed');
  assert.equal((failed.data as { readonly cause?: string }).cause, 'gift is redeemed');
  assert.deepEqual(more, []);
  assert.equal((await heldBy('bob')).includes(gift), true);
});

test('a reminder shows in the gift, and in the feed of who holds it', async () => {
  const bought = await ask('POST', '/api/v2/transactions', purchaseOf('latte', [{ user_id: 'bob' }]));
  const [gift = ''] = bought.json.data.gifts;
  await eventually(async () => (await typesIn(notificationStream(gift))).includes('NotificationSent'));
  const due = {
    transaction_id: bought.json.data.id,
    days: 7,
    expires_on: '2099-01-08',
    until: '2099-01-01T19:00:00.000Z',
  };
  await service.events.append(giftStream(gift), [eventOf('ReminderDue', due)], 'any');
  await eventually(async () => (await typesIn(notificationStream(gift))).includes('ReminderSent'));
  for (const user of ['ann', 'bob']) {
    const { reminders_sent, reminder_sent } = (await ask('GET', `/api/v2/gifts/${gift}`, undefined, user)).json.data;
    assert.match(reminder_sent, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    assert.deepEqual(reminders_sent, [reminder_sent]);
    assert.deepEqual(await fedTo(user, gift), ['gift.issued', 'gift.notified', 'gift.reminded']);
  }
  const query = `time=${encodeURIComponent(inHours(0))}&reason=test`;
  const asOf = await ask('GET', `/ops/gifts/${gift}/as-of?${query}`, undefined, 'aud');
  assert.equal(asOf.json.data?.reminders_sent?.length, 1, asOf.text);
});

test('refuses times without a zone, that are none, past, too far, after the expiry, and without a receiver', async () => {
  const receivers = [{ user_id: 'bob' }];
  for (const sendAt of [
    '',
    'now',
    '2027-01-01',
    '2027-01-01T09:00:00',
    '2027-02-30T09:00:00Z',
    '2027-01-01T24:00:00Z',
    '2027-01-01T09:00:00+25:00',
    inHours(-0.001),
    new Date(Date.now() + 366 * DAY_MS + HOUR_MS).toISOString(),
    // Gifts are valid for a year, to the end of the day.
    new Date(Date.now() + 366 * DAY_MS - MINUTE_MS).toISOString(),
  ]) {
    const reply = await ask('POST', '/api/v2/transactions', purchaseOf('latte', receivers, { sendAt }));
    refused(reply, 422, INVALID);
    assert.equal(reply.headers.get('error-field'), 'purchase.send_at', sendAt);
  }
  const nobody = await ask('POST', '/api/v2/transactions', purchaseOf('latte', [{}], { sendAt: inHours(1) }));
  refused(nobody, 422, 'send_at needs a receiver.');
  const atOnce = await ask('POST', '/api/v2/transactions', purchaseOf('latte', receivers));
  const path = `/api/v2/transactions/${atOnce.json.data.id}`;
  refused(await ask('PATCH', path, { send_at: inHours(1) }), 409, 'nothing to send: it was sent, or never scheduled.');
  refused(await ask('PATCH', path, { send_at: inHours(1) }, 'bob'), 404, 'transaction not found');
  refused(await ask('PATCH', path, {}), 422, 'send_at is required');
});

test.run();
