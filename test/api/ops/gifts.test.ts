import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { timeZone } from '../../../src/ops/ranges/times.js';
import { buy, buyOne, redeem, refused } from '../../support/service/giftFlow.js';
import { heldCollection } from '../../support/faults/heldCollection.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/ops/gifts');
let service: Service;
let id = '';
let redemption = '';
const PHONE = '+447700900002';

const ask = async (path: string, user = 'aud', headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
  service.ask('GET', path, { token: await service.userToken(user), headers });
const seen = async (): Promise<Json[]> => (await service.events.read(accessStream(new Date().toISOString()))) as Json[];

test.before(async () => {
  service = await startService();
  [id = ''] = await buy(service, 'latte', [{ phone_number: PHONE }, { user_id: 'cat' }]);
  await eventually(async () => (await service.events.read(`notification-${id}`)).length === 2);
  redemption = (await redeem(service, id)).json.data.id as string;
});
test.after(() => service.close());

test('auditors see the whole life; others are refused', async () => {
  const reply = await ask(`/ops/gifts/${id}/history`);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(
    reply.json.data.map((event: Json) => event.type),
    [
      'GiftsPurchased',
      'ChargeStarted',
      'PaymentCharged',
      'GiftIssued',
      'NotificationStarted',
      'NotificationSent',
      'GiftRedeemed',
    ],
  );
  assert.deepEqual([reply.json.gift_ids, reply.headers.get('cache-control')], [[id], 'no-store']);
  const last = (await seen()).at(-1);
  assert.deepEqual(
    [last.data.what, last.data.asked, last.data.count, last.metadata.by.user],
    ['GET /ops/gifts/:giftId/history', { giftId: id, transactionId: reply.json.transaction_id }, 7, 'aud'],
  );
  for (const user of ['ann', 'till-coffee']) refused(await ask(`/ops/gifts/${id}/history`, user), 403, 'Forbidden.');
  assert.deepEqual((await ask(`/ops/gifts/${id}/history`, 'sue')).json, reply.json);
  await eventually(async () => (await ask(`/ops/gifts/${redemption}/history`)).status === 200);
  assert.deepEqual((await ask(`/ops/gifts/${redemption}/history`)).json, reply.json);
  assert.equal((await ask(`/ops/gifts/${reply.json.transaction_id}/history`)).json.gift_ids.length, 2);
  for (const query of ['', '?format=xml', '?personal=true'])
    refused(await ask(`/ops/gifts/${'0'.repeat(20)}/history${query}`), 404, 'gift not found');
});

test('personal fields are masked unless a reason is given', async () => {
  assert.ok(!(await ask(`/ops/gifts/${id}/history`)).text.includes(PHONE));
  assert.ok((await ask(`/ops/gifts/${id}/history?personal=true&reason=court%20order`)).text.includes(PHONE));
  assert.deepEqual([(await seen()).at(-1).data.personal, (await seen()).at(-1).data.reason], [true, 'court order']);
  refused(await ask(`/ops/gifts/${id}/history?personal=true`), 422, 'reason is required with personal');
});

test('streams lines by format or Accept, recorded at the start and the end', async () => {
  const csv = await ask(`/ops/gifts/${id}/history`, 'aud', { accept: 'text/csv' });
  assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/);
  assert.deepEqual([csv.text.trimEnd().split('\n').length, csv.text.startsWith('position,stream,')], [8, true]);
  const inZone = await ask(`/ops/gifts/${id}/history?format=csv&time_zone=Pacific/Kiritimati`, 'aud');
  const [, event = ''] = inZone.text.split('\n');
  const [at = '', day] = event.split(',').slice(5);
  assert.equal(day, timeZone('Pacific/Kiritimati').dayOf(at), inZone.text);
  const ndjson = await ask(`/ops/gifts/${id}/history?format=ndjson`);
  assert.match(ndjson.headers.get('content-type') ?? '', /^application\/x-ndjson/);
  assert.deepEqual(
    ndjson.text
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as Json).type as string)
      .at(-1),
    'GiftRedeemed',
  );
  assert.equal((await ask(`/ops/gifts/${id}/history`, 'aud', { accept: 'application/x-ndjson' })).text, ndjson.text);
  const [begun, ended] = (await seen()).slice(-2);
  assert.deepEqual(
    [begun.type, ended.type, ended.data.count, ended.data.complete],
    ['OperationStarted', 'OperationEnded', 7, true],
  );
  refused(await ask(`/ops/gifts/${id}/history?format=xml`), 422, 'format must be json or ndjson or csv or excel');
});

test('the lives of many gifts come in pieces, and are one JSON all the same', async () => {
  const others = await buy(service, 'latte', Array(600).fill({}));
  const { transaction_id: large } = (await ask(`/ops/gifts/${others[0]}/history`)).json;
  const lines = async (): Promise<Json[]> =>
    (await ask(`/ops/gifts/${large}/history?format=ndjson`)).text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Json);
  await eventually(async () => (await lines()).length === 603);
  const reply = await ask(`/ops/gifts/${large}/history`);
  assert.deepEqual(
    [reply.status, reply.headers.get('content-type'), reply.headers.get('cache-control')],
    [200, 'application/json; charset=utf-8', 'no-store'],
  );
  assert.deepEqual(reply.json, { data: await lines(), transaction_id: large, gift_ids: others });
  assert.deepEqual(
    [reply.json.data.length, (await seen()).filter(({ type }) => type === 'OperationEnded').at(-1).data.count],
    [603, 603],
  );
});

test('a gift as it stood at a time', async () => {
  const now = encodeURIComponent(new Date().toISOString());
  const reply = await ask(`/ops/gifts/${id}/as-of?time=${now}&embed[]=redeemed&embed[]=message`);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(
    [
      reply.json.viewer,
      reply.json.data.gift_status,
      reply.json.embedded.redemptions[0].id,
      reply.json.embedded.messages[0].message,
    ],
    ['bob', 'redeemed', redemption, '***'],
  );
  assert.match(reply.json.position as string, /^\d+$/);
  assert.equal((await ask(`/ops/gifts/${id}/as-of?time=${now}`)).json.embedded, undefined);
  assert.equal((await ask(`/ops/gifts/${id}/as-of?time=${now}&viewer=cat`)).json.viewer, 'cat');
  const [redeemed] = (await service.events.read(`gift-${id}`)).slice(-1);
  const before = new Date(Date.parse(redeemed?.at ?? '') - 1).toISOString();
  assert.equal((await ask(`/ops/gifts/${redemption}/as-of?time=${before}`)).json.data.gift_status, 'sent');
});

test('what can not be answered says why', async () => {
  const transaction = (await ask(`/ops/gifts/${id}/history`)).json.transaction_id as string;
  const now = new Date().toISOString();
  refused(await ask(`/ops/gifts/${id}/as-of`), 422, 'time is required');
  refused(
    await ask(`/ops/gifts/${id}/as-of?time=soon`),
    422,
    'time: "soon" is not a time: give one such as 2026-05-04, 2026-05-04T12:30 or 2026-05-04T12:30:00Z',
  );
  assert.match(
    (await ask(`/ops/gifts/${id}/as-of?time=2100-01-01`)).json.error as string,
    /^time: "2100-01-01" is still to come: it is 20/,
  );
  refused(
    await ask(`/ops/gifts/${id}/as-of?time=${now}&time_zone=Mars`),
    422,
    '"Mars" is not a time zone: give one such as Europe/London or UTC',
  );
  refused(await ask(`/ops/gifts/${id}/as-of?time=${now}&viewer=nobody`), 422, 'viewer must be a user of that time');
  refused(
    await ask(`/ops/gifts/${transaction}/as-of?time=${now}`),
    422,
    'the id must name one gift: this transaction has 2',
  );
  refused(await ask(`/ops/gifts/${id}/as-of?time=1999-01-01`), 404, 'gift not found');
  for (const query of ['', `?time=${now}`])
    refused(await ask(`/ops/gifts/nothing/as-of${query}`), 404, 'gift not found');
  refused(await ask(`/ops/gifts/${id}/as-of?time=${now}&embed[]=nonsense`), 422, 'Unknown embed: nonsense.');
});

test('who saw what on a day is shown page by page', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const span = `from=${day}T00:00Z&to=${day}`;
  const first = await ask(`/ops/access?${span}&limit=2`);
  assert.deepEqual([first.status, first.json.data.length, first.json.next], [200, 2, `${day}.1`]);
  const second = await ask(`/ops/access?${span}&limit=1000&after=${first.json.next}`);
  assert.deepEqual([second.json.data[0].revision, second.json.next], [2, null]);
  const until = second.json.data[1].at as string;
  const part = (await ask(`/ops/access?from=${until}&to=${until}`)).json.data as Json[];
  assert.ok(part.length > 0 && part.every(({ at }) => at === until), 'a time counts to its millisecond');
  assert.deepEqual((await ask('/ops/access?from=1999-01-01&to=1999-01-01')).json, { data: [], next: null });
});

test('who saw what is found by person, gift and who, from day to day', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const today = `from=${day}T00:00Z`;
  const early = await ask('/ops/access?from=1999-01-01&limit=1000');
  assert.deepEqual([early.json.data, early.json.next], [[], '2001-09-26.-1'], 'a page may be empty');
  const later = await ask(`/ops/access?from=1999-01-01&limit=1000&after=${early.json.next}`);
  assert.equal(later.json.next, '2004-06-21.-1');
  const who = await ask(`/ops/access?${today}&who=aud&limit=2`);
  assert.match(who.json.next, new RegExp(`^${day}\\.\\d+$`));
  const after = await ask(`/ops/access?${today}&who=aud&limit=1000&after=${who.json.next}`);
  assert.ok(after.json.data[0].revision > who.json.data[1].revision);
  const about = await ask(`/ops/access?${today}&gift=${service.shortcodeOf(id)}&limit=1000`);
  assert.ok(about.json.data.length > 0);
  const [{ data: issued }] = (await service.events.read(`gift-${id}`)) as [Json];
  const names = [id, redemption, issued.transaction_id as string];
  for (const { type, data } of about.json.data as Json[])
    if (type !== 'OperationEnded') assert.ok(names.some((name) => JSON.stringify(data.asked).includes(name)));
  const longAgo = '/ops/access?from=1999-01-01&to=1999-01-01';
  assert.deepEqual((await ask(`${longAgo}&person=ann&gift=${id}`)).json, { data: [], next: null });
  assert.deepEqual((await ask(`${longAgo}&who=aud`)).json, { data: [], next: null });
  refused(await ask(`${longAgo}&who=Eve%20Smith`), 422, 'who is not known, and no record of this time is theirs');
  for (const one of ['person=nobody', 'person=phone:0f3b', 'gift=00000000000000000000'])
    refused(
      await ask(`${longAgo}&${one}`),
      422,
      `${one.split('=')[0]} is not known, and no record of this time is about it`,
    );
  const usual = await ask('/ops/access?time_zone=UTC&limit=1');
  assert.ok((usual.json.data[0].stream as string).endsWith(day), 'today, where no time is given');
  assert.match((await ask(`/ops/access?from=${day}&to=1999-01-01`)).text, /from \(.*\) is later than to/);
  assert.match((await ask('/ops/access?from=today')).json.error, /^from: "today" is not a time/);
  refused(await ask('/ops/access?from=2999-01-01'), 422, 'from must not be in the future');
  refused(await ask(`/ops/access?${today}&gift=none`), 422, 'gift is not valid');
  refused(await ask(`/ops/access?${today}&after=1999-01-01.3`), 422, 'after is not valid');
});

test('who saw a gift by its redemption, and who acted on it among many, is found by the gift', async () => {
  const gift = await buyOne(service);
  const redemption = (await redeem(service, gift)).json.data.id as string;
  assert.equal((await ask(`/ops/gifts/${redemption}/history`)).status, 200);
  const acted = await service.ask('POST', '/ops/actions', {
    token: await service.userToken('sue'),
    body: { action: 'block', items: [{ id: gift }], reason: 'reported as stolen' },
  });
  assert.equal(acted.status, 200, acted.text);
  assert.deepEqual(
    ((await ask(`/ops/access?gift=${gift}`)).json.data as Json[]).map(({ data }) => data.what),
    ['GET /ops/gifts/:giftId/history', 'POST /ops/actions'],
  );
});

test('waits for a redemption just answered, where its id leads to the gift', async () => {
  const { through, hold, free } = heldCollection('redemptions');
  const slow = await startService({ app: { through } });
  try {
    const gift = await buyOne(slow);
    hold();
    const redeemed = await redeem(slow, gift);
    assert.equal(redeemed.status, 201, redeemed.text);
    const token = await slow.userToken('aud');
    const headers = { 'gift-position': redeemed.headers.get('gift-position') ?? '' };
    const paths = ['history', `as-of?time=${encodeURIComponent(new Date().toISOString())}`].map(
      (what) => `/ops/gifts/${redeemed.json.data.id as string}/${what}`,
    );
    for (const path of paths) refused(await slow.ask('GET', path, { token, headers }), 503, 'Service unavailable.');
    await free();
    for (const path of paths) assert.equal((await slow.ask('GET', path, { token, headers })).status, 200, path);
  } finally {
    await free();
    await slow.close();
  }
});

test.run();
