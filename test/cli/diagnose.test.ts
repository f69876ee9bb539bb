/** `gift diagnose` without a running service, on a log that no service has served for long. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { importCatalogue } from '../../src/import/importCatalogue.js';
import { loadConfig } from '../../src/service/config.js';
import { openLog } from '../../src/service/engines.js';
import { loadKeys } from '../../src/service/keys.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { startFakeMongo } from '../support/engines/fakeMongo.js';
import { natsOfVersion } from '../support/engines/natsServer.js';
import { gift } from '../support/service/cli.js';
import { codesOnCommandLine } from '../support/service/diagnosis.js';

const test = suite<{ dir: string; diagnosed: (env?: Readonly<Record<string, string>>) => Promise<string[]> }>(
  'cli/diagnose',
);

const REMEDY = 'do what it says, and then: gift diagnose';
const MONTHS_AGO = new Date(Date.now() - 100 * 86_400_000).toISOString();
/** What is wrong with a log that was filled long ago, where nothing runs. */
const AT_REST = ['service_stopped', 'head_old', 'backup_old'];

let logId = '';
const filled = mkdtempSync(join(tmpdir(), 'gift-diagnose-'));
test.before(async () => {
  const config = loadConfig({ DATA_DIR: filled });
  const { events, subjects } = await openLog(config);
  const hash = keyedHash(loadKeys(config).hashKey);
  await importCatalogue({ events, hash, subjects, now: () => MONTHS_AGO }, CATALOGUE, { by: { user: 'cli:test' } });
  logId = events.logId;
  await events.close();
});
test.after(() => rmSync(filled, { recursive: true, force: true }));
test.before.each((context) => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-diagnose-'));
  cpSync(filled, dir, { recursive: true });
  context.dir = dir;
  context.diagnosed = async (env = {}) => codesOnCommandLine({ DATA_DIR: dir, ...env }, undefined);
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

test('names a stopped service, an unsigned log, and a log that nobody backs up', async ({ dir, diagnosed }) => {
  assert.deepEqual(await diagnosed(), AT_REST);
  const broken = await gift(dir, ['backup', join(dir, 'broken.log')], { signal: AbortSignal.abort() });
  assert.equal(broken.code, 130);
  assert.deepEqual(await diagnosed(), AT_REST, 'nothing was backed up');
  assert.equal((await gift(dir, ['backup', join(dir, 'backup.log')])).code, 0);
  assert.deepEqual(await diagnosed(), AT_REST.slice(0, 2));
});

test('names keys of another log', async ({ diagnosed }) => {
  assert.deepEqual(await diagnosed({ HASH_KEY: 'x'.repeat(40) }), ['keys_wrong', ...AT_REST]);
});

test('names a key store that is away, and no key to put back', async ({ diagnosed }) => {
  const codes = await diagnosed({ KEYS_URL: 'mongodb://127.0.0.1:1/keys' });
  assert.ok(codes.includes('key_store_unavailable'), codes.join());
  assert.ok(codes.includes('not_known') && !codes.includes('keys_wrong'), codes.join());
});

test('names refused credentials of the key store, and no key to put back', async ({ dir }) => {
  const server = await startFakeMongo((command) =>
    'saslStart' in command
      ? { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: 'Authentication failed.' }
      : {},
  );
  try {
    const KEYS_URL = server.url.replace('//', '//user:s3cret@');
    const { out, records } = await gift({ DATA_DIR: dir, PORT: '0', KEYS_URL }, ['diagnose', '--json']);
    assert.ok(!out.includes('s3cret'));
    const found = records().filter(({ what }) =>
      String(what).endsWith('the credentials are refused: Authentication failed.'),
    );
    assert.deepEqual(
      found.map(({ code, command }) => [code, command]),
      [
        ['key_store_unavailable', REMEDY],
        ['not_known', REMEDY],
      ],
      out,
    );
    assert.ok(!out.includes('keys_wrong'), out);
  } finally {
    await server.stop();
  }
});

test('names a bus that does not fit', async ({ dir }) => {
  const old = await natsOfVersion('2.1.9');
  try {
    const { records } = await gift({ DATA_DIR: dir, PORT: '0', NATS_URL: old.url }, ['diagnose', '--json']);
    const [bus] = records().filter(({ code }) => code === 'bus_unavailable');
    assert.match(String(bus?.['what']), /^bus: NATS_URL: .*2\.1\.9/);
    assert.equal(bus?.['command'], REMEDY);
  } finally {
    await old.close();
  }
});

test('names held outward work', async ({ dir, diagnosed }) => {
  assert.equal((await gift(dir, ['hold', '--reason', 'a drill'])).code, 0);
  const [stopped, ...others] = AT_REST;
  assert.deepEqual(await diagnosed(), [stopped, 'outward_work_held', ...others]);
});

test('names settings that contradict each other, and links that nobody can open', async ({ diagnosed }) => {
  const codes = await diagnosed({ STRIPE_SECRET_KEY: 'sk_test_1', HOST: '0.0.0.0' });
  assert.deepEqual(codes, ['service_stopped', 'settings_contradict', 'head_old', 'backup_old', 'links_dead']);
});

test('takes what answers at its address for its service only where that has the same log', async ({ dir }) => {
  let log: string | undefined;
  const server = createServer(({ url }, answer) => {
    const parts = { bus: { ready: false, detail: 'cannot be reached' } };
    answer.end(
      url === '/readyz'
        ? JSON.stringify({ status: 'not ready', parts, log })
        : 'gift_provider_breaker_state{provider="stripe",state="open"} 1\n',
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const codes = async (): Promise<string[]> => codesOnCommandLine({ DATA_DIR: dir }, url);
  const its = ['bus_unavailable', 'provider_left_alone'];
  try {
    // A release that does not say its log, and the log's own service.
    for (log of [undefined, logId]) {
      const found = await codes();
      assert.deepEqual(found.filter((code) => !AT_REST.includes(code)).sort(), its, log);
    }
    log = 'another';
    assert.deepEqual(await codes(), AT_REST);
  } finally {
    server.close();
  }
});

test('looks at the log where the read store can not be opened', async ({ dir, diagnosed }) => {
  writeFileSync(join(dir, 'read.db'), 'no database');
  assert.deepEqual(await diagnosed(), ['read_store_unavailable', 'not_known', 'head_old', 'backup_old']);
  // A sandbox has no routines; its clock is in the read store.
  assert.deepEqual(await diagnosed({ SANDBOX: '1' }), ['read_store_unavailable', 'not_known', 'head_old']);
  const [unavailable, notKnown] = (await gift({ DATA_DIR: dir, PORT: '0' }, ['diagnose', '--json'])).records();
  assert.match(String(unavailable?.['what']), /read\.db is not an SQLite file: move it away/);
  assert.deepEqual([unavailable?.['command'], notKnown?.['command']], [REMEDY, REMEDY]);
});

test('names what is not known where there is no log, and wrong settings with what to change', async ({ dir }) => {
  const elsewhere = { DATA_DIR: join(dir, 'nothing'), PORT: '0' };
  assert.deepEqual(await codesOnCommandLine(elsewhere, undefined), ['not_known']);
  const [notKnown] = (await gift(elsewhere, ['diagnose', '--json'])).records();
  assert.match(String(notKnown?.['what']), /\bengines: there is no event log in .*: set DATA_DIR to the service's/);
  assert.equal(notKnown?.['command'], REMEDY, 'a restart would not mend it');
  const { code, out, err } = await gift({ DATA_DIR: dir, SEAL_EVERY_MS: 'often' }, ['diagnose']);
  assert.deepEqual([code, err], [1, 'gift: 1 thing is wrong\n']);
  assert.match(out, /^settings_wrong \(money\): SEAL_EVERY_MS must be/);
});

test.run();
