import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { purchaseOf } from '../support/service/giftFlow.js';
import { runCommand } from '../support/service/runbook.js';
import { startProcess, untilReady } from '../support/service/service.js';
import { buyInto, inTrouble, readLog } from '../support/service/trouble.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('runbook, disks');

test('full disk: appends fail, a backup is made all the same, and room is enough to go on', async () => {
  await inTrouble('Full disk', {}, async (trouble) => {
    const service = await trouble.start();
    const { url = '' } = service;
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    // Files that may not grow are a full disk to who writes them.
    const limit = (bytes: string): void =>
      void execFileSync('prlimit', ['--pid', String(service.child.pid), `--fsize=${bytes}:unlimited`]);
    const data = trouble.env['DATA_DIR'] ?? '';
    limit(String(Math.max(...['events.db', 'events.db-wal'].map((name) => statSync(join(data, name)).size))));
    const refused = await eventually(async () => {
      const reply = await trouble.ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte', Array(500).fill({})));
      return reply.status === 503 ? reply : undefined;
    });
    assert.deepEqual(refused.json, { error: 'Service unavailable.' });
    assert.equal((await trouble.ask(url, 'GET', `/api/v2/gifts/${gift}`)).status, 200);
    await trouble.follow(/gift backup/);
    limit('unlimited');
    await trouble.follow();
    assert.equal((await trouble.ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte'))).status, 201);
  });
});

test('failing part: the projector can not write, and goes on once it can', async () => {
  await inTrouble('Failing part', {}, async (trouble) => {
    const service = await trouble.start();
    const { url = '' } = service;
    await untilReady(url);
    await buyInto(trouble, url);
    const limit = (bytes: string): void =>
      void execFileSync('prlimit', ['--pid', String(service.child.pid), `--fsize=${bytes}:unlimited`]);
    limit('4096');
    await trouble.follow(/gift_follower_failing/);
    limit('unlimited');
    await trouble.follow();
    assert.equal((await trouble.ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte'))).status, 201);
  });
});

test('lost machine: restored from the latest backup', async () => {
  await inTrouble('Lost machine', {}, async (trouble) => {
    const { env, dir } = trouble;
    const service = await trouble.start();
    await untilReady(service.url ?? '');
    const gift = await buyInto(trouble, service.url ?? '');
    const backup = { line: 0, command: 'gift backup $BACKUPS/latest.log', expected: [], exitCode: 0 };
    await eventually(async () => (await readLog(env['DATA_DIR'] ?? '', gift)) > 0);
    await runCommand(backup, env);
    await runCommand({ ...backup, command: 'gift keys backup $BACKUPS/latest.keys' }, env);
    await runCommand({ ...backup, command: 'gift people erasures > $BACKUPS/erasures.jsonl' }, env);
    await service.end('SIGKILL');
    const lost = env['DATA_DIR'] ?? '';
    env['DATA_DIR'] = join(dir, 'new');
    mkdirSync(env['DATA_DIR']);
    for (const key of ['hash.key', 'master.key', 'token.key']) cpSync(join(lost, key), join(env['DATA_DIR'], key));
    await trouble.follow(/gift people erase-again/);
    const again = await startProcess({ DATA_DIR: env['DATA_DIR'], PORT: '0' });
    try {
      await untilReady(again.url ?? '');
      await trouble.follow();
    } finally {
      await again.end();
    }
  });
});

test.run();
