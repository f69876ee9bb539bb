/** What callers get while requests come faster than the service can begin them (docs/limits.md#overload). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { freePort } from '../../support/engines/serverProcess.js';
import { buyOne } from '../../support/service/giftFlow.js';
import { pipelined, requestText } from '../../support/service/rawHttp.js';
import { type Service, startService } from '../../support/service/service.js';

const CONNECTIONS = 20;
const LOOK_UPS = 100;
/** More requests than one turn of the event loop begins. */
const A_TURN = 200;

const ORIGIN = 'https://shop.example';

const test = suite<{ service: Service; opsUrl: string }>('overload');
test.before(async (context) => {
  const opsPort = await freePort();
  context.opsUrl = `http://127.0.0.1:${opsPort}`;
  context.service = await startService({
    env: { REQUEST_WAIT_MS: '1', OPS_PORT: String(opsPort), CORS_ORIGINS: ORIGIN },
    split: false,
  });
});
test.after(({ service }) => service.close());

test('a redemption that is shed has no effect, and its repeat with the same key has one', async ({ service }) => {
  const [gifts, token] = await Promise.all([
    Promise.all(Array.from({ length: CONNECTIONS }, () => buyOne(service))),
    service.userToken('till-coffee'),
  ]);
  const headers = { Connection: 'keep-alive', Authorization: `Bearer ${token}` };
  const lookUp = (gift: string): string => requestText('GET', `/api/v2/gifts/${gift}`, headers);
  const redemption = (gift: string): string =>
    requestText(
      'POST',
      `/api/v2/gifts/${gift}/redemptions`,
      { ...headers, 'Content-Type': 'application/json', 'Idempotency-Key': `key-${gift}` },
      '{"location_id":"bean-soho"}',
    );
  const answers = await Promise.all(
    gifts.map((gift) =>
      pipelined(
        service.url,
        [...Array.from({ length: LOOK_UPS }, () => lookUp(gift)), redemption(gift)],
        A_TURN / CONNECTIONS,
      ),
    ),
  );
  const shed = answers.flat().filter(({ status }) => status === 503);
  assert.ok(shed.length > 0);
  for (const { headers: sent } of shed) assert.equal(sent.get('retry-after'), '1');
  assert.ok(answers.flat().every(({ status }) => [200, 201, 503].includes(status)));
  const { text } = await service.ask('GET', '/metrics');
  assert.match(text, new RegExp(`^gift_shed_requests_total ${shed.length}$`, 'm'));
  for (const [index, gift] of gifts.entries()) {
    const redeemed = async (): Promise<number> =>
      (await service.events.read(`gift-${gift}`)).filter(({ type }) => type === 'GiftRedeemed').length;
    const { status } = answers[index]?.at(-1) ?? { status: 0 };
    assert.equal(await redeemed(), status === 201 ? 1 : 0);
    const [repeated] = await pipelined(service.url, [redemption(gift)]);
    assert.equal(repeated?.status, 201);
    assert.equal(await redeemed(), 1);
  }
});

test('health is told at once', async ({ service }) => {
  const health = ['/healthz', '/readyz', '/metrics'];
  const requests = Array.from({ length: 1_000 }, () =>
    requestText('GET', '/api/v2/products', { Connection: 'keep-alive' }),
  );
  const checks = health.map((path) => requestText('GET', path, { Connection: 'keep-alive' }));
  const answers = await pipelined(service.url, [...requests, ...checks], A_TURN);
  assert.ok(answers.some(({ status }) => status === 503));
  assert.deepEqual(
    answers.slice(-health.length).map(({ status }) => status),
    [200, 200, 200],
  );
});

test('what is shed, at OPS_PORT too, is counted and has the headers of every answer', async ({ service, opsUrl }) => {
  const counted = async (): Promise<number> => {
    const { text } = await service.ask('GET', '/metrics');
    return Number(/^gift_shed_requests_total (\d+)$/m.exec(text)?.[1]);
  };
  const before = await counted();
  const requests = Array.from({ length: 1_000 }, (_, n) =>
    requestText('GET', '/ops/parked', { Connection: 'keep-alive', Origin: ORIGIN, 'X-Request-Id': `request-${n}` }),
  );
  const answers = await pipelined(opsUrl, requests, A_TURN);
  assert.deepEqual(
    answers.map(({ headers }) => headers.get('x-request-id')),
    answers.map((_, n) => `request-${n}`),
  );
  for (const { headers } of answers)
    assert.deepEqual([headers.get('access-control-allow-origin'), headers.get('vary')], [ORIGIN, 'Origin']);
  const shed = answers.filter(({ status }) => status === 503).length;
  assert.ok(shed > 0);
  assert.equal(await counted(), before + shed);
});

test.run();
