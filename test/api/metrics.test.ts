import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { suite } from 'uvu';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { valuesOf } from '../support/service/exposed.js';
import { buy, redeem, refused } from '../support/service/giftFlow.js';
import { request, startService, type Service, untilReady } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('metrics');
const SILENT = pino({ level: 'silent' });
let service: Service;

test.before(async () => {
  service = await startService({ split: false });
});
test.after(() => service.close());

test('what a purchase and its redemption do shows, by patterns and subjects alone', async () => {
  const token = await service.userToken('bob');
  const before = valuesOf((await service.ask('GET', '/metrics')).text);
  const [gift = ''] = await buy(service, 'latte', [{ phone_number: '07700 900002' }]);
  assert.equal((await redeem(service, gift, 'bob')).status, 201);
  assert.equal((await redeem(service, gift, 'bob')).status, 405);
  assert.equal((await service.ask('GET', `/api/v2/gifts/${gift}`, { token })).status, 200);
  assert.equal((await service.ask('GET', '/api/v2/gifts/nothing-of-the-kind', { token })).status, 404);
  assert.equal((await service.ask('GET', `/secret-path/${gift}`)).status, 404);
  assert.equal((await service.ask('DELETE', `/api/v2/gifts/${gift}`)).status, 405);
  const { text, headers } = await eventually(async () => {
    const reply = await service.ask('GET', '/metrics');
    return reply.text.includes('gift_worker_answers_total{subject="notifications.send",outcome="sent"} 1')
      ? reply
      : undefined;
  });
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const after = valuesOf(text);
  const grown = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const redemptions = 'method="POST",route="/api/v2/gifts/:giftId/redemptions"';
  assert.equal(grown(`gift_http_requests_total{${redemptions},status="201"}`), 1);
  assert.equal(grown(`gift_http_requests_total{${redemptions},status="405"}`), 1);
  assert.equal(grown(`gift_http_request_duration_seconds_count{${redemptions}}`), 2);
  assert.equal(grown('gift_http_requests_total{method="GET",route="/api/v2/gifts/:giftId",status="404"}'), 1);
  assert.equal(grown('gift_http_requests_total{method="GET",route="unknown",status="404"}'), 1);
  assert.equal(grown('gift_http_requests_total{method="DELETE",route="/api/v2/gifts/:giftId",status="405"}'), 1);
  assert.ok(grown('gift_appended_events_total') >= 6);
  assert.ok(grown('gift_append_duration_seconds_count') >= 6);
  assert.equal(grown('gift_bus_requests_total{subject="payments.charge",outcome="ok"}'), 1);
  assert.equal(grown('gift_worker_answers_total{subject="payments.charge",outcome="charged"}'), 1);
  assert.equal(after.get('gift_process_leader'), 1);

  for (const secret of [
    gift,
    gift.slice(0, 7),
    service.shortcodeOf(gift),
    '900002',
    'bob@',
    'secret-path',
    'nothing-of-the-kind',
    token,
  ])
    assert.ok(!text.includes(secret), secret);
});

test('GET and HEAD alone, with or without a slash, never kept', async () => {
  for (const path of ['/metrics', '/metrics/', '/metrics?x=1']) {
    const reply = await service.ask('GET', path);
    assert.deepEqual([reply.status, reply.headers.get('cache-control')], [200, 'no-store']);
  }
  const head = await service.ask('HEAD', '/metrics');
  assert.deepEqual([head.status, head.text], [200, '']);
  const post = await service.ask('POST', '/metrics');
  refused(post, 405, 'Method not allowed.');
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
  refused(await service.ask('GET', '/metrics/more'), 404, 'Not found.');
});

test("shows metrics on METRICS_PORT alone, without the API too, and a read model's lag", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-metrics-'));
  const start = (roles: string) =>
    startApp(loadConfig({ PORT: '0', METRICS_PORT: '0', DATA_DIR: dataDir, ROLES: roles }), SILENT);
  const apps = [await start('projector'), await start('api')];
  try {
    const [projector, api] = apps;
    await untilReady(projector?.healthUrl ?? '');
    refused(await request(`${api?.url ?? ''}/metrics`, 'GET'), 404, 'Not found.');
    await request(`${api?.url ?? ''}/api/v2/products`, 'GET');
    const found = valuesOf((await request(`${api?.healthUrl ?? ''}/metrics`, 'GET')).text);
    assert.equal(found.get('gift_http_requests_total{method="GET",route="/api/v2/products",status="401"}'), 1);
    const other = valuesOf((await request(`${projector?.healthUrl ?? ''}/metrics`, 'GET')).text);
    assert.ok(
      !other.has('gift_process_leader') &&
        other.has(`gift_projection_lag_seconds{projection="gifts",version="${giftsProjection.version}"}`),
    );
  } finally {
    for (const app of apps.reverse()) await app.close();
    rmSync(dataDir, { recursive: true });
  }
});

test.run();
