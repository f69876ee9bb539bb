/** The event feed over HTTP: who sees what, in which order, page by page, and while waiting. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { buy, buyOne, purchaseOf, redeem, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/events');
let service: Service;

interface FedEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly position: string;
  readonly data: Readonly<Record<string, string>>;
}

interface Page {
  readonly data: readonly FedEvent[];
  readonly next: string | null;
  readonly has_more: boolean;
}

test.before(async () => {
  service = await startService();
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

async function ask(token: string, query = '', headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
  return service.ask('GET', `/api/v2/events${query}`, { token, headers });
}

async function pageOf(token: string, query = '', headers: Readonly<Record<string, string>> = {}): Promise<Page> {
  const reply = await ask(token, query, headers);
  assert.equal(reply.status, 200, reply.text);
  checked(answerOf(reply));
  return reply.json as Page;
}

/** Every event, by pages of `limit`. */
async function all(token: string, limit = 100, more = ''): Promise<FedEvent[]> {
  const found: FedEvent[] = [];
  for (let after = ''; ;) {
    const page = await pageOf(token, `?limit=${limit}&after=${encodeURIComponent(after)}${more}`);
    found.push(...page.data);
    if (!page.has_more) return found;
    assert.ok(page.next !== null && page.next > after, 'a page goes on');
    after = page.next;
  }
}

const typesOf = (events: readonly FedEvent[], gift?: string): string[] =>
  events.filter(({ data }) => gift === undefined || data['gift_id'] === gift).map(({ type }) => type);

async function typesFor(user: string, gift: string): Promise<string[]> {
  return typesOf(await all(await service.userToken(user)), gift);
}

/** Waits until the buyer sees that the gift's receiver was notified. */
async function notified(gift: string, buyer = 'ann'): Promise<void> {
  await eventually(async () => (await typesFor(buyer, gift)).includes('gift.notified'));
}

/** Waits for the last of these, then expects them all. */
async function seen(user: string, gift: string, types: readonly string[]): Promise<void> {
  await eventually(async () => (await typesFor(user, gift)).at(-1) === types.at(-1));
  assert.deepEqual(await typesFor(user, gift), types);
}

async function support(gift: string, action: string, body: object): Promise<Reply> {
  const reply = await service.ask('POST', `/ops/gifts/${gift}/${action}`, {
    token: await service.userToken('sue'),
    body,
  });
  assert.ok(reply.status < 300, reply.text);
  return reply;
}

test('shows a gift’s life to buyer, client, holder and merchant, each their part', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notified(gift);
  assert.equal((await redeem(service, gift)).status, 201);
  assert.equal((await unredeem(service, gift)).status, 200);
  const read = (await redeem(service, gift)).headers.get('gift-position') ?? '';
  const shown = async (token: string): Promise<string[]> =>
    typesOf((await pageOf(token, '?limit=500', { 'Gift-Position': read })).data, gift);
  const redemptions = ['gift.redeemed', 'gift.unredeemed', 'gift.redeemed'];
  const whole = ['gift.issued', 'gift.notified', ...redemptions];
  assert.deepEqual(await shown(await service.userToken('ann')), whole);
  assert.deepEqual(await shown(await service.userToken('bob')), whole);
  assert.deepEqual(await shown(await service.clientToken('app')), whole);
  const till = await service.userToken('till-coffee');
  assert.deepEqual(await shown(till), redemptions);
  const { data } = await pageOf(till, '?limit=500&types=gift.unredeemed', { 'Gift-Position': read });
  assert.equal(data.find((event) => event.data['gift_id'] === gift)?.data['location_id'], 'bean-soho');
  for (const other of ['cat', 'till-cinema', 'sue']) assert.deepEqual(await shown(await service.userToken(other)), []);
  assert.deepEqual(await shown(await service.clientToken('pos')), []);
});

test('shows a merchant what happens at its locations, also to gifts that are valid elsewhere only', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  assert.equal((await redeem(service, gift, 'bob', 'screen-soho')).status, 201);
  const reversed = await unredeem(service, gift);
  assert.equal(reversed.status, 200);
  const read = { 'Gift-Position': reversed.headers.get('gift-position') ?? '' };
  const shown = async (user: string): Promise<string[]> =>
    typesOf((await pageOf(await service.userToken(user), '?limit=500', read)).data, gift);
  assert.deepEqual(await shown('till-cinema'), ['gift.redeemed', 'gift.unredeemed']);
  assert.deepEqual(await shown('till-coffee'), []);
});

test('shows the purchase to buyer and client alone', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notified(gift);
  const events = await all(await service.userToken('ann'));
  const transaction = events.find(({ data }) => data['gift_id'] === gift)?.data['transaction_id'];
  const of = (seen: readonly FedEvent[]): string[] =>
    typesOf(seen.filter(({ type, data }) => type.startsWith('transaction.') && data['transaction_id'] === transaction));
  assert.deepEqual(of(events), ['transaction.created', 'transaction.charged']);
  assert.deepEqual(of(await all(await service.clientToken())), ['transaction.created', 'transaction.charged']);
  assert.deepEqual(of(await all(await service.userToken('bob'))), []);
});

test('a declined purchase is declined, and issues nothing', async () => {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(reply.status, 402);
  const [declined] = await eventually(async () => {
    const found = await all(await service.userToken('ann'), 100, '&types[]=transaction.declined');
    return found.length > 0 && found;
  });
  const id = declined?.data['transaction_id'];
  assert.deepEqual(
    typesOf((await all(await service.userToken('ann'))).filter(({ data }) => data['transaction_id'] === id)),
    ['transaction.created', 'transaction.declined'],
  );
});

test('entries hold ids and state, and nothing of receiver, number or message', async () => {
  const [gift = ''] = await buy(service, 'latte', [{ phone_number: '07700900002' }]);
  await notified(gift);
  const position = (await redeem(service, gift)).headers.get('gift-position') ?? '';
  const events = (await pageOf(await service.userToken('ann'), '?limit=500', { 'Gift-Position': position })).data;
  const redeemed = events.find(({ type, data }) => type === 'gift.redeemed' && data['gift_id'] === gift);
  assert.deepEqual(Object.keys(redeemed?.data ?? {}).toSorted(), [
    'gift_id',
    'location_id',
    'redemption_id',
    'transaction_id',
  ]);
  assert.equal(redeemed?.position, position);
  assert.match(redeemed?.created_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.doesNotMatch(JSON.stringify(events), /900002|bob|phone/);
});

test('shows what was sent to a number to the user who had it then, also once it has moved', async () => {
  const [gift = ''] = await buy(service, 'latte', [{ phone_number: '07700900002' }]);
  await notified(gift);
  assert.deepEqual(await typesFor('bob', gift), ['gift.issued', 'gift.notified']);
  assert.deepEqual(await typesFor('cat', gift), []);
});

test('a claim shows the gift to the claimer from then on', async () => {
  const gift = await buyOne(service, 'latte');
  const token = await service.userToken('cat');
  const reply = await service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(gift)}/claim`, { token });
  assert.equal(reply.status, 200, reply.text);
  await seen('cat', gift, ['gift.claimed']);
  assert.deepEqual(await typesFor('ann', gift), ['gift.issued', 'gift.claimed']);
});

test('a reassigned gift goes on with its new receiver, and ends for the old one with that event', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notified(gift);
  await support(gift, 'reassign', { user_id: 'cat', reason: 'wrong person' });
  await seen('cat', gift, ['gift.reassigned']);
  assert.equal((await redeem(service, gift)).status, 201);
  await seen('cat', gift, ['gift.reassigned', 'gift.redeemed']);
  assert.deepEqual(await typesFor('bob', gift), ['gift.issued', 'gift.notified', 'gift.reassigned']);
});

test('a block says whether the gift is blocked afterwards', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notified(gift);
  const one = { reason: 'under investigation', ticket: 'T1' };
  const two = { reason: 'under investigation too', ticket: 'T2' };
  await support(gift, 'block', one);
  await support(gift, 'block', two);
  await support(gift, 'unblock', one);
  await support(gift, 'unblock', two);
  await eventually(async () => (await typesFor('bob', gift)).length === 6);
  const events = await all(await service.userToken('bob'), 100, '&types[]=gift.blocked&types[]=gift.unblocked');
  const own = events.filter(({ data }) => data['gift_id'] === gift);
  assert.deepEqual(
    own.map(({ type, data }) => [type, data['blocked']]),
    [
      ['gift.blocked', true],
      ['gift.blocked', true],
      ['gift.unblocked', true],
      ['gift.unblocked', false],
    ],
  );
});

test('a refund is told, and which gifts it cancelled', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notified(gift);
  const bought = (await all(await service.userToken('ann'))).find(({ data }) => data['gift_id'] === gift);
  const transaction = bought?.data['transaction_id'];
  const reply = await service.ask('POST', `/ops/transactions/${transaction}/refund`, {
    token: await service.userToken('sue'),
    body: { gift_ids: [gift], reason: 'asked for' },
  });
  assert.ok(reply.status < 300, reply.text);
  await eventually(async () => (await typesFor('ann', gift)).at(-1) === 'gift.cancelled');
  const refunds = async (): Promise<FedEvent[]> =>
    (await all(await service.userToken('ann'))).filter(
      ({ type, data }) => type === 'transaction.refunded' && data['transaction_id'] === transaction,
    );
  await eventually(async () => (await refunds()).length > 0);
  const refunded = await refunds();
  assert.equal(refunded.length, 1);
  assert.ok(refunded[0]?.data['refund_id']);
});

test('pages of every size give the same events, in the order of the log', async () => {
  for (const token of [await service.userToken('bob'), await service.clientToken()]) {
    const whole = await all(token, 500);
    assert.ok(whole.length > 12, 'there is enough to page');
    for (const limit of [1, 3, 7]) assert.deepEqual(await all(token, limit), whole);
    const positions = whole.map(({ position }) => position);
    assert.deepEqual(positions, positions.toSorted());
    assert.equal(new Set(whole.map(({ id }) => id)).size, whole.length);
  }
});

test('of some types alone, whatever else there is', async () => {
  const token = await service.clientToken();
  const issued = (await all(token)).filter(({ type }) => type === 'gift.issued');
  assert.deepEqual(await all(token, 2, '&types[]=gift.issued'), issued);
});

test('an empty page goes on from the end of the log', async () => {
  const token = await service.userToken('vip');
  const { data, next, has_more } = await pageOf(token);
  assert.deepEqual([data, has_more], [[], false]);
  assert.ok(next);
  assert.equal((await pageOf(token, `?after=${encodeURIComponent(next ?? '')}`)).data.length, 0);
});

test('a long poll answers once something comes', async () => {
  const token = await service.userToken('dan');
  const { next } = await pageOf(token);
  const other = await service.userToken('till-shops');
  const end = (await pageOf(other)).next;
  let ended = false;
  void pageOf(other, `?wait=30&after=${encodeURIComponent(end ?? '')}`).then(() => (ended = true));
  const waiting = pageOf(token, `?wait=30&after=${encodeURIComponent(next ?? '')}`);
  const gift = await buyOne(service, 'latte', { user_id: 'dan' });
  const { data } = await waiting;
  assert.ok(!ended, 'it does not wait as long as one to whom nothing comes');
  assert.deepEqual(typesOf(data, gift)[0], 'gift.issued');
});

test('a long poll without an event answers in time', async () => {
  const token = await service.userToken('till-shops');
  const { next } = await pageOf(token);
  const started = performance.now();
  const page = await pageOf(token, `?wait=1&after=${encodeURIComponent(next ?? '')}`);
  const took = performance.now() - started;
  assert.ok(took >= 950, `took ${took} ms`);
  assert.deepEqual(page.data, []);
});

test('a poll whose login has ended meanwhile shows nothing more', async () => {
  const user = await service.ask('POST', '/oauth/token', {
    token: await service.clientToken(),
    body: { grant_type: 'password', username: 'bob@test.example', password: 'bob-password' },
  });
  const token = user.json['access_token'] as string;
  const { next } = await pageOf(token);
  const waiting = ask(token, `?wait=20&after=${encodeURIComponent(next ?? '')}`);
  await sleep(200);
  const revoked = await service.ask('POST', '/oauth/revoke', {
    body: { token, client_id: 'app', client_secret: 'app-secret' },
  });
  assert.equal(revoked.status, 200, revoked.text);
  await sleep(1_200);
  await buyOne(service, 'latte', { user_id: 'bob' });
  assert.equal((await waiting).status, 401);
});

test('a caller who waits with more than 20 requests at once is told to slow down', async () => {
  const token = await service.userToken('vip');
  const { next } = await pageOf(token);
  const path = `?wait=2&after=${encodeURIComponent(next ?? '')}`;
  const replies = await Promise.all(Array.from({ length: 22 }, async () => ask(token, path)));
  const refused = replies.filter(({ status }) => status === 429);
  assert.equal(refused.length, 2);
  assert.equal(refused[0]?.headers.get('retry-after'), '1');
  assert.ok(replies.filter(({ status }) => status === 200).length === 20);
  assert.equal((await ask(token, '?wait=1')).status, 200);
});

test('a stop of the service answers those who wait, and keeps nobody', async () => {
  const stopped = await startService();
  const token = await stopped.userToken('vip');
  // The feed may still be built after a start.
  const first = await eventually(async () => {
    const page = await stopped.ask('GET', '/api/v2/events', { token });
    return page.status === 200 && page;
  });
  const waiting = stopped.ask('GET', `/api/v2/events?wait=30&after=${encodeURIComponent(first.json['next'])}`, {
    token,
  });
  await sleep(200);
  await stopped.close();
  const { status, json } = await waiting;
  assert.deepEqual([status, json['data'], json['next']], [200, [], first.json['next']]);
});

for (const [what, after, words] of [
  ['no position', 'yesterday', 'must be the `position` of an event, or the `next` of a page'],
  [
    'a position of another log',
    `00000000-0000-4000-8000-000000000000:${'0'.repeat(16)}`,
    'is of another log: start without it; events that you have seen keep their ids',
  ],
] as const)
  test(`refuses ${what} to go on after`, async () => {
    const reply = await ask(await service.clientToken(), `?after=${encodeURIComponent(after)}`);
    assert.deepEqual([reply.status, reply.json], [422, { error: `after ${words}` } as Json]);
    assert.equal(reply.headers.get('error-field'), 'after');
  });

test('refuses a place beyond the end of the log', async () => {
  const token = await service.clientToken();
  const { next } = await pageOf(token);
  const beyond = (next ?? '').replace(/\d(?=.{3}$)/, '9');
  const reply = await ask(token, `?after=${encodeURIComponent(beyond)}`);
  assert.equal(reply.status, 422, reply.text);
  assert.match(reply.text, /^{"error":"after lies beyond the end of the log/);
});

test('refuses a mistyped type, limit or wait, and ignores unknown parameters', async () => {
  const token = await service.clientToken();
  for (const query of ['?_=1', '?utm_source=mail&limit=1']) assert.equal((await ask(token, query)).status, 200, query);
  for (const query of ['?types[]=gift.isued', '?limit=0', '?limit=501', '?wait=31', '?wait=x'])
    assert.equal((await ask(token, query)).status, 422, query);
});

test('are CloudEvents where these are accepted, page by page', async () => {
  const token = await service.clientToken();
  const plain = await all(token);
  assert.ok(plain.length > 3);
  const found: Json[] = [];
  let path = '/api/v2/events?limit=3';
  for (let count = 3; count === 3;) {
    const headers = { accept: 'application/cloudevents-batch+json' };
    const reply = await service.ask('GET', path, { token, headers });
    assert.equal(reply.headers.get('content-type'), 'application/cloudevents-batch+json');
    checked(answerOf(reply));
    const batch = reply.json as Json[];
    count = batch.length;
    found.push(...batch);
    path = /^<(.*)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1] ?? '';
    assert.match(path, /[?&]limit=3(&|$)/);
  }
  assert.deepEqual(
    found
      .slice(0, plain.length)
      .map(({ id, type, time, position, data }) => ({ id, type, created_at: time, position, data })),
    plain,
  );
  for (const { specversion, source, subject, datacontenttype, data } of found)
    assert.deepEqual(
      [specversion, source.endsWith('/api/v2/events'), subject, datacontenttype],
      ['1.0', true, data.gift_id ?? data.transaction_id, 'application/json'],
    );
  const either = await service.ask('GET', '/api/v2/events', { token, headers: { accept: '*/*' } });
  assert.ok('data' in either.json);
});

test.run();
