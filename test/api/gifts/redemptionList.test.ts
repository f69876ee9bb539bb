import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { buyOne, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('lists of redemptions');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const list = async (gift: string, query = '', user = 'ann'): Promise<Reply> =>
  service.ask('GET', `/api/v2/gifts/${gift}/redemptions${query}`, { token: await service.userToken(user) });

test('lists all redemptions of a gift as they are answered, the latest first, as soon as they are', async () => {
  const gift = await buyOne(service);
  assert.deepEqual((await list(gift)).json, { data: [], next: null, has_more: false });
  const answers: Json[] = [];
  for (let n = 0; n < 3; n++) {
    const { data } = (await redeem(service, gift)).json;
    assert.deepEqual((await list(gift)).json.data[0], data);
    answers.unshift(n < 2 ? (await unredeem(service, gift)).json.data : data);
    assert.deepEqual((await list(gift)).json.data, answers);
  }
  for (const user of ['till-cinema', 'cat'])
    assert.deepEqual((await list(service.shortcodeOf(gift), '', user)).json.data, answers, 'as the gift is looked up');

  const first = await list(gift, '?limit=2');
  assert.deepEqual([first.json.data, first.json.has_more], [answers.slice(0, 2), true]);
  assert.equal((await unredeem(service, gift)).status, 200);
  assert.equal((await redeem(service, gift)).status, 201);
  const second = await list(gift, `?limit=2&after=${first.json.next}`);
  assert.deepEqual(second.json, { data: answers.slice(2), next: null, has_more: false });
});

test('refuses an unknown gift, a place of another gift, and a client', async () => {
  const gift = await buyOne(service);
  const other = await buyOne(service);
  const { id } = (await redeem(service, other)).json.data;
  refused(await list('0'.repeat(20)), 404, 'gift not found');
  for (const after of [id, 'x']) {
    const reply = await list(gift, `?after=${after}`);
    refused(reply, 422, 'after is not valid');
    assert.deepEqual([reply.headers.get('error-code'), reply.headers.get('error-field')], ['schema', 'after']);
  }
  refused(
    await service.ask('GET', `/api/v2/gifts/${gift}/redemptions`, { token: await service.clientToken() }),
    403,
    'Forbidden.',
  );
});

test.run();
