/** What a client reads of its requests that failed, and how little that can cost. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import pino from 'pino';
import { MOST_OF_DAY, openFailedRequests, RETAINED_DAYS } from '../../../src/api/requests/failedRequests.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { eventually } from '../../support/assertions/until.js';
import { refused } from '../../support/service/giftFlow.js';

const test = suite('requests that failed');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const list = async (query = '', client = 'app'): Promise<Reply> =>
  service.ask('GET', `/api/v2/requests${query}`, { token: await service.clientToken(client) });
const rows = async (query = '', client = 'app'): Promise<Json[]> => {
  const reply = await list(query, client);
  assert.equal(reply.status, 200, reply.text);
  return reply.json.data as Json[];
};

test('a client reads which of its requests failed, and nothing of what they held', async () => {
  const token = await service.userToken('bob');
  const number = '07700900123';
  const body = { payment: { method: 'card', reference: number }, purchase: { type: 'gift', reference: 'none' } };
  const asking = { token, body, key: number };
  await service.ask('GET', `/api/v2/gifts/${number}?embed[]=voucher`, { token, headers: { 'x-request-id': 'mine-1' } });
  for (let n = 0; n < 2; n++) await service.ask('POST', '/api/v2/transactions', asking);
  await service.ask('GET', '/api/v2/nothing', { token });
  await service.ask('GET', '/api/v2/me', { token: 'garbage' });
  assert.equal((await service.ask('GET', '/api/v2/me', { token })).status, 200);
  const support = await service.userToken('sue');
  assert.equal((await service.ask('GET', '/ops/totals', { token: support })).status, 403);
  const found = await eventually(async () => {
    const all = await rows();
    return all.length === 3 && all;
  });
  assert.deepEqual(
    found.map(({ method, route, status, error_code }) => [method, route, status, error_code]),
    [
      ['POST', '/api/v2/transactions', 422, 'invalid_payment_reference'],
      ['POST', '/api/v2/transactions', 422, 'invalid_payment_reference'],
      ['GET', '/api/v2/gifts/{giftId}', 404, 'gift_not_found'],
    ],
  );
  assert.equal(found[2].request_id, 'mine-1');
  assert.equal(JSON.stringify(found).includes(number), false);
  assert.deepEqual(await rows('', 'pos'), []);
  refused(await service.ask('GET', '/api/v2/requests', { token }), 403, 'Forbidden.');
});

test('narrows them by status and time, page by page', async () => {
  const all = await rows('?limit=100');
  const ids = (found: readonly Json[]): string[] => found.map(({ id }) => id as string);
  assert.deepEqual(ids(await rows('?status=404')), ids(all.filter(({ status }) => status === 404)));
  assert.deepEqual(ids(await rows('?status=4xx')), ids(all));
  assert.deepEqual(await rows('?status=5xx'), []);
  const { at, id } = all[1];
  assert.ok(ids(await rows(`?from=${at}`)).includes(id));
  assert.equal(ids(await rows(`?to=${at}`)).includes(id), false);
  const first = (await list('?limit=1&status=4xx')).json;
  assert.deepEqual([ids(first.data), first.has_more], [[all[0].id], true]);
  assert.deepEqual(ids(await rows(`?limit=1&after=${first.next}`)), [id]);
  for (const wrong of ['status=2xx', 'status=40', 'from=monday', 'after=x']) {
    const reply = await list(`?${wrong}`);
    assert.deepEqual([reply.status, reply.headers.get('error-field')], [422, wrong.split('=')[0]]);
  }
});

test('no caller fills the disk: of each client and day only the latest rows are kept, for some days', async () => {
  let now = Date.parse('2026-05-04T12:00:00Z');
  const records = memoryRecords(() => now);
  const open = (): ReturnType<typeof openFailedRequests> =>
    openFailedRequests(records, pino({ level: 'silent' }), () => new Date(now).toISOString());
  const failed = open();
  const row = { client: 'app', method: 'GET', route: '/api/v2/me', code: 'forbidden', requestId: 'r' };
  for (let n = 0; n < 5 * MOST_OF_DAY; n++) {
    failed.note({ ...row, status: 400 + (n % 100) });
    now += 1;
  }
  failed.note({ ...row, client: 'app2', status: 500 });
  const kept = await failed.of('app');
  assert.equal(kept.length, MOST_OF_DAY);
  assert.equal(kept[0]?.at, new Date(now - 1).toISOString());
  // Another process of the same service stores rows of the same day.
  const other = open();
  other.note({ ...row, status: 503 });
  await other.close();
  assert.deepEqual((await failed.of('app')).map(({ status }) => status).slice(0, 1), [503]);
  assert.equal((await failed.of('app')).length, MOST_OF_DAY);
  assert.equal((await failed.of('app2')).length, 1);
  now += RETAINED_DAYS * 86_400_000;
  assert.deepEqual(await failed.of('app'), []);
  await failed.close();
});

const FAILED = { client: 'app', method: 'GET', route: '/api/v2/me', status: 503, code: 'unavailable' } as const;

test('stores rows later that the store was away for', async () => {
  const records = memoryRecords(Date.now);
  let isAway = true;
  const get: typeof records.get = async (key) => {
    if (isAway) throw new UnavailableError('the read store is away');
    return records.get(key);
  };
  const now = (): string => new Date().toISOString();
  const failed = openFailedRequests({ ...records, get }, pino({ level: 'silent' }), now);
  failed.note({ ...FAILED, requestId: 'r' });
  assert.deepEqual(await failed.of('app'), []);
  isAway = false;
  assert.equal((await failed.of('app')).length, 1);
  await failed.close();
});

test('keeps the latest rows of an outage, each once, where a write that failed was stored', async () => {
  let now = Date.parse('2026-05-04T12:00:00Z');
  const records = memoryRecords(() => now);
  let answers = false;
  const put: typeof records.put = async (...asked) => {
    const version = await records.put(...asked);
    if (!answers) throw new UnavailableError('the read store does not answer', { outcomeUnknown: true });
    return version;
  };
  const failed = openFailedRequests({ ...records, put }, pino({ level: 'silent' }), () => new Date(now).toISOString());
  const note = (count: number): void => {
    for (let n = 0; n < count; n++) {
      now += 1;
      failed.note({ ...FAILED, requestId: `${now}` });
    }
  };
  note(2);
  const idsIn = async (): Promise<string[]> => (await failed.of('app')).map(({ requestId }) => requestId);
  assert.equal((await idsIn()).length, 2);
  assert.equal((await idsIn()).length, 2);
  note(2 * MOST_OF_DAY);
  const storing = idsIn();
  note(MOST_OF_DAY);
  await storing;
  answers = true;
  const kept = await idsIn();
  assert.deepEqual([kept.length, new Set(kept).size, kept[0], kept.at(-1)], [500, 500, `${now}`, `${now - 499}`]);
  await failed.close();
});

test.run();
