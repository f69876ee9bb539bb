import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { suite } from 'uvu';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { cleanEnv, runs } from '../support/service/mainProcess.js';
import { MAIN } from '../support/service/programs.js';
import { request, startProcess, untilReady } from '../support/service/service.js';
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

test.run();
