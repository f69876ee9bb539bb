import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { suite } from 'uvu';
import { type Readiness, health } from '../../src/api/health.js';
import { application } from '../../src/api/pipeline/server.js';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { listen } from '../../src/api/listener/listener.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { answerOf, checked } from '../support/service/answers.js';
import { refused } from '../support/service/giftFlow.js';
import { type Reply, type Service, request, startService, untilReady } from '../support/service/service.js';
import { unexpected } from '../support/assertions/unexpected.js';

const test = suite('health');
const SILENT = pino({ level: 'silent' });
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

test('/healthz: alive, without a token', async () => {
  for (const path of ['/healthz', '/healthz/', '/healthz?x=1']) {
    const reply = await service.ask('GET', path);
    checked(answerOf(reply));
    assert.deepEqual(
      [reply.status, reply.json, reply.headers.get('cache-control')],
      [200, { status: 'alive' }, 'no-store'],
    );
    assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
  }
});

test('/readyz: every engine and projection, what is simulated, and no address', async () => {
  const reply = await service.ask('GET', '/readyz');
  checked(answerOf(reply));
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get('cache-control'), 'no-store');
  const { status, parts, simulated } = reply.json;
  assert.equal(status, 'ready');
  assert.deepEqual(simulated, ['payments', 'notifications']);
  for (const name of [
    'event store',
    'read store',
    'bus',
    'catalogue',
    ...PROJECTIONS.map((one) => `projection ${one.name}`),
  ]) {
    assert.equal(parts[name]?.ready, true, name);
  }
  assert.doesNotMatch(reply.text, /\/|127\.0\.0\.1|localhost/);
});

test('HEAD answers without a body; other methods are refused with Allow', async () => {
  for (const path of ['/healthz', '/readyz', '/readyz/']) {
    const head = await service.ask('HEAD', path);
    assert.deepEqual([head.status, head.text], [200, '']);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const reply = await service.ask(method, path);
      refused(reply, 405, 'Method not allowed.');
      assert.equal(reply.headers.get('allow'), 'GET, HEAD');
    }
  }
});

test('not ready: 503 with the error’s shape, Retry-After, and still alive', async () => {
  const parts = {
    'event store': { ready: true, detail: 'embedded' },
    bus: { ready: false, detail: 'cannot be reached' },
  };
  await serving(
    async () => ({ parts, simulated: [] }),
    async (ask) => {
      const reply = await ask('/readyz');
      assert.deepEqual(
        [reply.status, reply.json],
        [503, { status: 'not ready', error: 'Service unavailable.', parts, simulated: [] }],
      );
      assert.equal(reply.headers.get('retry-after'), '1');
      assert.equal((await ask('/healthz')).status, 200);
    },
  );
});

test('a failing check does not reveal its cause', async () => {
  await serving(
    async () => Promise.reject(new Error('at /home/secret/place.js:1:1')),
    async (ask) => {
      refused(await ask('/readyz'), 500, 'Internal error.');
    },
  );
});

test('reports a log whose file was removed or replaced', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-health-'));
  const app = await startApp(loadConfig({ PORT: '0', DATA_DIR: dataDir }), SILENT);
  try {
    const { url = '' } = app;
    await untilReady(url);
    renameSync(join(dataDir, 'events.db'), join(dataDir, 'moved.db'));
    const reply = await request(`${url}/readyz`, 'GET');
    assert.deepEqual(
      [reply.status, reply.json.parts['event store']],
      [
        503,
        {
          ready: false,
          detail: 'events.db was removed or replaced under the service: writes are refused until it is started again',
        },
      ],
    );
    renameSync(join(dataDir, 'moved.db'), join(dataDir, 'events.db'));
    // What was refused a write meanwhile starts again by itself.
    await untilReady(url);
  } finally {
    await app.close();
    rmSync(dataDir, { recursive: true });
  }
});

test('on a port of its own health is answered in full there alone, and nothing else is', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-health-'));
  const app = await startApp(loadConfig({ PORT: '0', METRICS_PORT: '0', DATA_DIR: dataDir }), SILENT);
  try {
    const { url = '', healthUrl = '' } = app;
    await untilReady(healthUrl);
    checked(answerOf(await request(`${healthUrl}/readyz`, 'GET')));
    for (const reply of [
      await request(`${healthUrl}/api/v2/products`, 'GET'),
      await request(`${url}/metrics`, 'GET'),
    ]) {
      checked(answerOf(reply));
      refused(reply, 404, 'Not found.');
    }
    const shown = async (path: string): Promise<readonly unknown[]> => {
      const { status, json } = await request(`${url}${path}`, 'GET');
      return [status, json];
    };
    assert.deepEqual(await shown('/healthz'), [200, { status: 'alive' }]);
    assert.deepEqual(await shown('/readyz'), [200, { status: 'ready' }]);
    renameSync(join(dataDir, 'events.db'), join(dataDir, 'moved.db'));
    assert.deepEqual(await shown('/readyz'), [503, { status: 'not ready', error: 'Service unavailable.' }]);
    renameSync(join(dataDir, 'moved.db'), join(dataDir, 'events.db'));
  } finally {
    await app.close();
    rmSync(dataDir, { recursive: true });
  }
});

test.run();

/** Serves health with this look at the parts. */
async function serving(
  readiness: Readiness,
  use: (ask: (path: string) => Promise<Reply>) => Promise<void>,
): Promise<void> {
  const listener = await listen(0, '127.0.0.1', unexpected);
  try {
    const before = await request(`http://127.0.0.1:${listener.port}/healthz`, 'GET');
    checked(answerOf(before));
    refused(before, 503, 'Service unavailable.');
    listener.serve(application(SILENT, [health(readiness)]).callback());
    await use((path) => request(`http://127.0.0.1:${listener.port}${path}`, 'GET'));
  } finally {
    await listener.close();
  }
}
