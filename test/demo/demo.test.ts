import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { suite } from 'uvu';
import { cleanEnv } from '../support/service/mainProcess.js';
import { DEMO } from '../support/service/programs.js';

const test = suite('demo');

test('walks through the main job, shows each exchange on a line, keeps serving, and cleans up', async () => {
  const child = spawn(process.execPath, [DEMO], {
    env: { ...cleanEnv(), PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const lines: string[] = [];
  let url = '';
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    url = /^To read: (\S+)\/docs$/.exec(line)?.[1] ?? '';
    if (url !== '') break;
  }
  const told = lines.join('\n');
  const [, dataDir = ''] = /Data folder: (\S+)/.exec(told) ?? [];
  try {
    assert.notEqual(url, '', told);
    assert.equal((await fetch(`${url}/openapi.json`)).status, 200);
    assert.ok(existsSync(dataDir));
  } finally {
    child.kill('SIGTERM');
  }
  assert.deepEqual([(await ended)[0], existsSync(dataDir)], [0, false]);

  assert.deepEqual(lines.filter((line) => /^\d+\. /.test(line)).length, 11);
  assert.equal(
    lines.filter((line) => line.startsWith('   > ')).length,
    lines.filter((line) => line.startsWith('   < ')).length,
  );
  assert.ok(lines.every((line) => !/^ {3}/.test(line) || line.length <= 250));
  const keyed =
    /> POST \S+\/redemptions \(Idempotency-Key: demo-redeem-1\) \{ "location_id".*\n {3}< 201 \{id: "(\w+)"[^]*> POST \S+\/redemptions \(Idempotency-Key: demo-redeem-1\) .*\n {3}< 201 \(Idempotent-Replayed: true\) \{id: "(\w+)"/.exec(
      told,
    );
  assert.ok(keyed !== null && keyed[1] === keyed[2], told);
  assert.match(told, /< 405 \{error: "gift already redeemed\."\}/);
  assert.match(told, /embedded \{vouchers: 1, segments: 1\}$/m);
  assert.match(told, /voucher\/claimed\n {3}< 200 \{voucherType: "\w+", expiresAt: "[^"]+", .*giftId: "\w+"\}/);
  assert.match(told, /V1 embedded\.vouchers\[0\]\.code: (\w+); V2 data\[0\]\.value: \1$/m);
  const commands = told.match(/^curl .*$/gm) ?? [];
  assert.ok(commands.length >= 5 && lines.includes(`A=${url}`), told);
  for (const command of commands) assert.ok(command.includes('$A/'), command);
});

test("uses no real provider of the environment; says what to change where it can't start", async () => {
  const taken = createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  const temporary = mkdtempSync(join(tmpdir(), 'gift-demo-test-'));
  try {
    const real = {
      PAYMENTS: 'stripe',
      STRIPE_SECRET_KEY: 'sk_live_x',
      STRIPE_WEBHOOK_SECRET: 'whsec_x',
      EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
      MONGODB_URL: 'mongodb://127.0.0.1:1',
      NATS_URL: 'nats://127.0.0.1:1',
    };
    for (const [more, message] of [
      [{ ...real, PORT: String(port) }, `port ${port} of 127.0.0.1 is taken: set PORT to a free one\n`],
      [{ PORT: '99999' }, 'settings are wrong:\n  PORT must be a whole number from 0 to 65535, not "99999"\n'],
    ] as const) {
      const child = spawn(process.execPath, [DEMO], {
        env: { ...cleanEnv(), TMPDIR: temporary, ...more },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let errors = '';
      child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number | null];
      assert.deepEqual([code, errors, readdirSync(temporary)], [1, message, []]);
    }
  } finally {
    taken.close();
    rmSync(temporary, { recursive: true });
  }
});

test('shows what it is where it is asked for help or given arguments, and starts nothing', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'gift-demo-test-'));
  try {
    for (const [argument, exit] of [
      ['--help', 0],
      ['--port', 2],
    ] as const) {
      const child = spawn(process.execPath, [DEMO, argument], {
        env: { ...cleanEnv(), PORT: '0', TMPDIR: temporary },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let said = '';
      for (const out of [child.stdout, child.stderr]) out.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number | null];
      assert.deepEqual([code, readdirSync(temporary)], [exit, []]);
      assert.match(said, /This starts the demo.*environment variables\.\n$/);
    }
  } finally {
    rmSync(temporary, { recursive: true });
  }
});

test('ends and cleans up once its reader has left', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'gift-demo-test-'));
  try {
    const child = spawn(process.execPath, [DEMO], {
      env: { ...cleanEnv(), PORT: '0', TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close') as Promise<[number | null]>;
    await once(child.stdout, 'data');
    child.stdout.destroy();
    assert.deepEqual([(await ended)[0], readdirSync(temporary)], [0, []]);
  } finally {
    rmSync(temporary, { recursive: true });
  }
});

test('a folder with something in it is not used', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-demo-test-'));
  try {
    writeFileSync(join(dir, 'mine'), '');
    const child = spawn(process.execPath, [DEMO], {
      env: { ...cleanEnv(), PORT: '0', DATA_DIR: dir },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    const [code] = (await once(child, 'close')) as [number | null];
    assert.deepEqual([code, errors], [1, `DATA_DIR ${dir} is not empty: the demo wants a fresh one, or none\n`]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test.run();
