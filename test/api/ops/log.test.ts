/** The log over HTTP: filters, pages, a live tail, and the same on the command line. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { eventually } from '../../support/assertions/until.js';
import { buy, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('api/ops/log');
let service: Service;
let gifts: string[] = [];
const PHONE = '07700 900166';

const ask = async (query: string, user = 'sue'): Promise<Reply> =>
  service.ask('GET', `/ops/log?${query}`, { token: await service.userToken(user) });
const answered = async (query: string, user?: string): Promise<Json> => {
  const reply = await ask(query, user);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
};
const typesOf = ({ data }: Json): unknown[] => (data as Json[]).map(({ type }) => type as unknown);
const records = async (): Promise<Json[]> =>
  (await service.events.read(accessStream(new Date().toISOString()))) as Json[];

test.before(async () => {
  service = await startService();
  gifts = await buy(service, 'latte', [{ user_id: 'bob' }, { phone_number: PHONE }]);
  for (const gift of gifts)
    await eventually(async () => (await service.events.read(`notification-${gift}`)).length === 2);
});
test.after(() => service.close());

test('reads events in the order of the log, by stream, category, type and request', async () => {
  const [gift = ''] = gifts;
  const own = await answered(`stream=gift-${gift}`);
  assert.deepEqual([typesOf(own), own.end], [['GiftIssued'], true]);
  const { position, correlation_id, transaction_id } = { ...own.data[0], ...own.data[0].data } as Json;
  assert.deepEqual(typesOf(await answered(`stream=gift-${gift}&category=notification`)), []);
  assert.deepEqual(typesOf(await answered('category=gift')), ['GiftIssued', 'GiftIssued']);
  assert.deepEqual(typesOf(await answered('type=GiftIssued&category=gift')), ['GiftIssued', 'GiftIssued']);
  const trace = await answered(`correlation_id=${correlation_id as string}`);
  assert.deepEqual(typesOf(trace).slice(0, 3), ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);
  assert.ok(typesOf(trace).includes('NotificationSent'));
  assert.deepEqual(
    new Set((trace.data as Json[]).map((event) => event.correlation_id as unknown)),
    new Set([correlation_id]),
  );
  const positions = (trace.data as Json[]).map((event) => event.position as string);
  assert.deepEqual(positions, positions.toSorted());
  const bought = await answered(`stream=transaction-${transaction_id as string}&limit=1`);
  assert.deepEqual([typesOf(bought), bought.next, bought.end], [['GiftsPurchased'], bought.data[0].position, false]);
  assert.deepEqual(typesOf(await answered(`stream=gift-${gift}&after=${position as string}`)), []);
  const then = own.data[0].at as string;
  assert.equal((await answered(`category=gift&from=${then}&to=${then}`)).data[0].position, position);
  assert.deepEqual(typesOf(await answered('category=gift&to=2020-01-01')), []);
});

test('pages follow one another to the end of the log, without access records', async () => {
  const paged: Json[] = [];
  for (let next = ''; ;) {
    const page = await answered(`limit=7&after=${next}`);
    paged.push(...(page.data as Json[]));
    next = page.next as string;
    if (page.end === true) break;
    assert.equal(page.data.length, 7);
  }
  const whole: string[] = [];
  for await (const { events } of service.events.readAll(undefined))
    whole.push(...events.filter(({ stream }) => !stream.startsWith('access-')).map(({ id }) => id));
  assert.deepEqual(
    paged.map(({ id }) => id as string),
    whole,
  );
});

test('a live tail begins near the end and goes on from an empty page', async () => {
  const begun = await answered('last=2');
  const ids = (begun.data as Json[]).map(({ id }) => id as string);
  assert.deepEqual([ids.length, begun.end], [2, true]);
  assert.deepEqual(
    (await answered('last=3')).data.slice(1).map(({ id }: Json) => id as string),
    ids,
  );
  assert.deepEqual(typesOf(await answered(`last=5&stream=gift-${gifts[0] ?? ''}`)), ['GiftIssued']);
  const empty = await answered(`after=${begun.next as string}`);
  assert.deepEqual([empty.data, empty.end], [[], true]);
  const before = (await records()).length;
  await answered(`after=${empty.next as string}&category=gift`);
  assert.equal((await records()).length, before, 'a poll that shows nothing leaves no record');
  await service.ask('POST', `/ops/gifts/${gifts[0] ?? ''}/block`, {
    token: await service.userToken('sue'),
    body: { reason: 'lost' },
  });
  const next = await answered(`after=${empty.next as string}&category=gift`);
  assert.deepEqual([typesOf(next), next.data[0].data.reason], [['GiftBlocked'], 'lost']);
  const record = (await records()).at(-1) ?? {};
  assert.deepEqual(
    [record.data.what, record.data.asked.category, record.data.count, record.metadata.by.user],
    ['GET /ops/log', 'gift', 1, 'sue'],
  );
});

test('masks personal fields, shows them for a reason, and secrets never', async () => {
  const masked = await answered('type=GiftsPurchased');
  assert.deepEqual(
    masked.data[0].data.receivers.map(({ phone_number }: Json) => phone_number as unknown),
    [undefined, '***'],
  );
  refused(await ask('type=GiftsPurchased&personal=true'), 422, 'reason is required with personal');
  for (const many of ['category=user', 'type=GiftsPurchased', 'stream=user-ann'])
    refused(
      await ask(`${many}&personal=true&reason=a%20test`),
      422,
      'personal needs the stream of a gift, a notification or a transaction',
    );
  const stream = masked.data[0].stream as string;
  const shown = await answered(`stream=${stream}&type=GiftsPurchased&personal=true&reason=a%20test`);
  assert.equal(shown.data[0].data.receivers[1].phone_number, '+447700900166');
  const { data } = (await records()).at(-1) ?? {};
  assert.deepEqual(
    [data.personal, data.reason, data.asked.transactionId],
    [true, 'a test', stream.slice('transaction-'.length)],
  );
  for (const page of [masked, shown]) assert.doesNotMatch(JSON.stringify(page), /"seed"|"phone_id"/);
  const numbers = await answered('category=phone');
  assert.ok(numbers.data.length > 0);
  for (const { stream: name } of numbers.data as Json[]) assert.equal(name, 'phone-***');
});

test('refuses a filter that nothing can match, a fault, and callers without a role', async () => {
  refused(await ask('stream=gift-nothing'), 422, 'stream: the log knows no stream "gift-nothing"');
  refused(await ask('type=GiftEaten'), 422, 'type: this release knows no type "GiftEaten"');
  for (const query of ['category=access', 'type=RecordsShown', `stream=${accessStream(new Date().toISOString())}`])
    assert.match((await ask(query, 'aud')).text, /access records are listed by GET \/ops\/access/);
  refused(await ask('last=5&from=2026-05-04'), 422, 'last must not be given with from');
  for (const query of ['after=x', 'last=0', 'last=1001', 'kind=gift', 'from=noon', 'stream='])
    assert.equal((await ask(query)).status, 422, query);
  for (const user of ['ann', 'till-coffee']) refused(await ask('', user), 403, 'Forbidden.');
});

test.run();
