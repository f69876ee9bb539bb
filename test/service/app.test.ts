import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { suite } from 'uvu';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { openTestEngines } from '../support/engines/engines.js';
import { buy, redeem } from '../support/service/giftFlow.js';
import { cleanEnv, runs } from '../support/service/mainProcess.js';
import { MAIN } from '../support/service/programs.js';
import { type Service, request, startProcess, startService, untilReady } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const test = suite<{ dir: string }>('service');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-app-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

test('ends with every fault of wrong settings', async () => {
  const { code, errors } = await runs({ PORT: 'x', ROLES: 'cook' });
  assert.equal(code, 1);
  assert.match(errors, /ROLES must be.*\n.*PORT must be/);
});

test('ends with what to change when its port is taken', async ({ dir }) => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const { code, errors } = await runs({ PORT: String(port), DATA_DIR: dir });
  server.close();
  assert.equal(code, 1);
  assert.equal(errors, `port ${port} of 127.0.0.1 is taken: set PORT to a free one\n`);
});

test('ends with what to change when HOST is not an address of this machine', async ({ dir }) => {
  // An address for documentation (RFC 5737), which no machine has.
  assert.deepEqual(await runs({ HOST: '192.0.2.1', PORT: '0', DATA_DIR: dir }), {
    code: 1,
    errors: 'HOST 192.0.2.1 is not an address of this machine\n',
  });
});

test('ends when the port for health and metrics is taken, naming its setting', async ({ dir }) => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  const { port } = server.address() as AddressInfo;
  try {
    for (const more of [{}, { ROLES: 'worker', PORT: String(port) }]) {
      assert.deepEqual(await runs({ PORT: '0', ...more, METRICS_PORT: String(port), DATA_DIR: dir }), {
        code: 1,
        errors: `port ${port} of 127.0.0.1 is taken: set METRICS_PORT to a free one\n`,
      });
    }
  } finally {
    server.close();
  }
});

test('leaves nothing open when a part fails to start after it listens', async ({ dir }) => {
  const config = loadConfig({ PORT: '0', METRICS_PORT: '0', DATA_DIR: dir });
  const listeners = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length;
  const through = (): never => {
    throw new Error('broken');
  };
  await assert.rejects(startApp(config, pino({ level: 'silent' }), { through }), { message: 'broken' });
  await eventually(async () => listeners() === 0);
});

test('ends when no data folder can be made', async () => {
  const { code, errors } = await runs({ PORT: '0', DATA_DIR: '/proc/gift/data' });
  assert.deepEqual(
    [code, errors.split(';')[0]],
    [1, "DATA_DIR: /proc/gift/data is not a folder that can be used: it can't be made (ENOENT)"],
  );
});

test('ends at a foreign file and leaves it as it was', async ({ dir }) => {
  for (const name of ['events.db', 'read.db']) {
    const file = join(dir, name);
    writeFileSync(file, 'my shopping list '.repeat(500));
    const before = readFileSync(file);
    const { code, errors } = await runs({ PORT: '0', DATA_DIR: dir });
    assert.equal(code, 1);
    assert.ok(errors.includes(file), errors);
    assert.ok(!errors.includes('    at '), 'no stack');
    assert.deepEqual(readFileSync(file), before);
    rmSync(file);
  }
});

test('ends with what to change, and no stack, at a file as data folder, or a key cut short', async ({ dir }) => {
  const file = join(dir, 'file');
  writeFileSync(file, '');
  const folder = await runs({ PORT: '0', DATA_DIR: file });
  assert.deepEqual(
    [folder.code, folder.errors.split(';')[0]],
    [1, `DATA_DIR: ${file} is not a folder that can be used: a file stands there`],
  );
  writeFileSync(join(dir, 'hash.key'), 'short');
  const key = await runs({ PORT: '0', DATA_DIR: dir });
  assert.deepEqual(key, {
    code: 1,
    errors: `DATA_DIR: ${join(dir, 'hash.key')} is not a whole key: put back the one this installation was started with; it was left as it is\n`,
  });
});

test('does not start without the key that its log was made with, and makes no other', async ({ dir }) => {
  const engines = await openTestEngines();
  try {
    const service = await startService({ dataDir: dir, engines, catalogue: CATALOGUE });
    await service.close();
    const other = await runs({ ...service.settings, HASH_KEY: 'k'.repeat(43) });
    assert.equal(other.code, 1);
    assert.match(other.errors, /^HASH_KEY: this is not the key that the event log was made with: /);
    if (engines.servers.has('eventstoredb')) return;
    rmSync(join(dir, 'hash.key'));
    const lost = await runs(service.settings);
    assert.equal(lost.code, 1);
    assert.match(lost.errors, /^HASH_KEY: the key that the event log was made with is missing: put .*\n$/);
    assert.ok(!existsSync(join(dir, 'hash.key')));
  } finally {
    await engines.close();
  }
});

test('ends at once by SIGTERM before it has started, also as the first process of a container', async ({ dir }) => {
  // It waits for a bus that accepts and is silent.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const child = spawn(process.execPath, [MAIN], {
    env: { ...cleanEnv(), DATA_DIR: dir, PORT: '0', NATS_URL: `nats://127.0.0.1:${port}` },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'close');
  await once(silent, 'connection');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [143, null]);
  silent.close();
});

test('finishes requests by SIGTERM, with health on a port of its own', async ({ dir }) => {
  const service = await startProcess({ DATA_DIR: dir, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'info' });
  const health = (JSON.parse(service.lines.find((line) => line.includes('"started"')) ?? '{}') as { health: string })
    .health;
  await untilReady(health);
  assert.deepEqual((await request(`${health}/healthz`, 'GET')).json, { status: 'alive' });
  await untilReady(service.url ?? '');
  assert.deepEqual(Object.keys((await request(`${service.url ?? ''}/readyz`, 'GET')).json), ['status']);
  const under = request(`${service.url ?? ''}/oauth/token`, 'POST', {
    body: { grant_type: 'client_credentials', client_id: 'x', client_secret: 'y' },
  }).catch(() => undefined);
  await service.end('SIGTERM');
  assert.ok([401, undefined].includes((await under)?.status), 'answered whole, or never taken');
  assert.equal(service.child.exitCode, 0);
});

test('loses nothing acknowledged, killed with -9 under load again and again', async ({ dir }) => {
  const engines = await openTestEngines();
  const first = await startService({ dataDir: dir, engines, catalogue: CATALOGUE });
  const gifts = await buy(first, 'latte', Array(120).fill({}));
  const token = await first.userToken('ann');
  await first.close();

  const acknowledged = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const service = await startProcess(first.settings);
    const url = service.url ?? '';
    await untilReady(url);
    // Each round has gifts of its own: of those before, any number may be redeemed without its answer.
    const batch = gifts.slice(round * 40, (round + 1) * 40);
    const requested = batch.map(async (gift) => {
      const reply = await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', {
        token,
        body: { location_id: 'bean-soho' },
      }).catch(() => undefined);
      if (reply?.status === 201) acknowledged.add(gift);
    });
    await eventually(() => batch.filter((gift) => acknowledged.has(gift)).length >= 10);
    await service.end('SIGKILL');
    await Promise.all(requested);
  }
  const left = gifts.filter((gift) => !acknowledged.has(gift));

  const service: Service = await startService({ dataDir: dir, engines });
  try {
    for (const gift of acknowledged) {
      const events = await service.events.read(giftStream(gift));
      assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1, gift);
      const shown = await service.ask('GET', `/api/v2/gifts/${gift}`, { token });
      assert.equal(shown.json.data.gift_status, 'redeemed');
    }
    for (const gift of left) {
      const reply = await redeem(service, gift, 'ann');
      const events = await service.events.read(giftStream(gift));
      assert.ok(reply.status === 201 || reply.status === 405);
      assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1, gift);
    }
  } finally {
    await service.close();
    await engines.close();
  }
});

test('works end to end with one process per role', async () => {
  const service = await startService({ split: true });
  try {
    const [gift] = await buy(service, 'latte', [{ phone_number: '07700 900002' }]);
    const reply = await redeem(service, gift ?? '', 'bob');
    assert.equal(reply.status, 201);
    const shown = await service.ask('GET', `/api/v2/gifts/${gift}`, {
      token: await service.userToken('bob'),
      headers: { 'gift-position': reply.headers.get('gift-position') ?? '' },
    });
    assert.equal(shown.json.data.gift_status, 'redeemed');
  } finally {
    await service.close();
  }
});

test.run();
