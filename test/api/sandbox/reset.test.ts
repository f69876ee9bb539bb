import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { openEmbeddedKeyStore } from '../../../src/adapters/embedded/keyStore/keyStore.js';
import { importCatalogue } from '../../../src/import/importCatalogue.js';
import { currentTime } from '../../../src/lib/clock.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { loadConfig } from '../../../src/service/config.js';
import { openLog } from '../../../src/service/engines.js';
import { loadKeys } from '../../../src/service/keys.js';
import { until } from '../../support/assertions/until.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { purchaseOf, refused } from '../../support/service/giftFlow.js';
import {
  type Json,
  clientTokenOf,
  type Reply,
  request,
  type ServiceProcess,
  startProcess,
  untilReady,
  userTokenOf,
} from '../../support/service/service.js';

const test = suite("a sandbox's reset");
let dir = '';
let env: Record<string, string> = {};
let running: ServiceProcess;
let url = '';

test.before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gift-reset-'));
  env = { DATA_DIR: dir, PORT: '0', SANDBOX: '1', LOG_LEVEL: 'info', SEAL_EVERY_MS: '200' };
  const config = loadConfig(env);
  const { hashKey } = loadKeys(config);
  const { events, subjects } = await openLog(config);
  const deps = { events, hash: keyedHash(hashKey), subjects, now: currentTime };
  await importCatalogue(deps, CATALOGUE, { by: { user: 'cli:test' } });
  await events.close();
  await start();
});
test.after(async () => {
  await running.end('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function start(): Promise<void> {
  running = await startProcess(env);
  url = running.url ?? '';
  await untilReady(url);
}

async function ask(method: string, path: string, token: string, body?: unknown): Promise<Reply> {
  return request(url + path, method, body === undefined ? { token } : { token, body });
}

const reset = async (): Promise<Reply> => ask('POST', '/sandbox/reset', await clientTokenOf(url));

async function buy(receivers: readonly object[] = [{}], message?: string): Promise<string> {
  const bought = await ask(
    'POST',
    '/api/v2/transactions',
    await userTokenOf(url, 'ann'),
    purchaseOf('latte', receivers, message === undefined ? {} : { message }),
  );
  assert.equal(bought.status, 201, bought.text);
  const [id] = bought.json.data.gifts as [string];
  // The list may be behind the purchase.
  await until(async () => (await sent()).some((gift) => gift.id === id), 'the list to show the purchase');
  return id;
}

/** Ids of persons and data keys. */
async function keyRows(): Promise<string[]> {
  const keys = await openEmbeddedKeyStore({ dir });
  try {
    return (await keys.page(undefined, 1_000)).map(({ id }) => id);
  } finally {
    await keys.close();
  }
}

async function sent(): Promise<Json[]> {
  return (await ask('GET', '/api/v2/gifts?as=sender', await userTokenOf(url, 'ann'))).json.data as Json[];
}

const gifts = async (): Promise<number> => (await sent()).length;

test('keeps what was imported, on the same port, and nothing that was bought; the clock goes back', async () => {
  const rows = await keyRows();
  const gift = await buy([{ phone_number: '+447700900123' }], 'a message to forget');
  assert.ok((await keyRows()).length > rows.length);
  const token = await clientTokenOf(url);
  const products = (await ask('GET', '/api/v2/products', token)).text;
  assert.equal((await ask('POST', '/sandbox/clock', token, { advance: 600 })).status, 200);
  assert.equal(await gifts(), 1);
  const feed = (await ask('GET', '/api/v2/events', token)).json.next as string;
  const answer = await reset();
  assert.equal(answer.status, 202, answer.text);
  assert.match(answer.json.data.ended_log_id, /^[0-9a-f-]{36}$/);
  const meanwhile = await request(`${url}/readyz`, 'GET');
  assert.equal(meanwhile.status, 503);
  assert.deepEqual(meanwhile.json.parts, { sandbox: { ready: false, detail: 'is being reset' } });
  const other = await ask('GET', '/api/v2/products', token);
  refused(other, 503, 'Service unavailable.');
  assert.equal(other.headers.get('retry-after'), '1');
  assert.equal((await request(`${url}/healthz`, 'GET')).status, 200);
  await untilReady(url);
  refused(await ask('GET', '/api/v2/products', token), 401, 'Authentication failed.');
  assert.equal(await gifts(), 0);
  refused(await ask('GET', `/api/v2/gifts/${gift}`, await userTokenOf(url, 'ann')), 404, 'gift not found');
  const client = await clientTokenOf(url);
  assert.equal((await ask('GET', '/sandbox/clock', client)).json.data.offset_seconds, 0);
  assert.equal((await ask('GET', '/api/v2/products', client)).text, products);
  assert.equal((await ask('GET', `/api/v2/events?after=${feed}`, client)).status, 422);
  assert.deepEqual(await keyRows(), rows);
  assert.ok(!existsSync(join(dir, 'tree', answer.json.data.ended_log_id as string)));
});

test('is for clients alone, and refused beside another process or where roles are shared out', async () => {
  refused(await request(`${url}/sandbox/reset`, 'POST'), 401, 'Authentication failed.');
  for (const user of ['ann', 'sue'])
    refused(await ask('POST', '/sandbox/reset', await userTokenOf(url, user)), 403, 'Forbidden.');
  await buy();
  const second = await startProcess({ ...env, ROLES: 'api' });
  try {
    const other = await request(`${second.url}/sandbox/reset`, 'POST', { token: await clientTokenOf(url) });
    refused(other, 409, 'only a sandbox with all roles in one process can be reset.');
    assert.equal(other.headers.get('error-code'), 'reset_refused');
    refused(await reset(), 409, 'another process uses the data folder of this sandbox.');
  } finally {
    await second.end();
  }
  assert.equal(await gifts(), 1);
});

test('that can not have the log for itself leaves it as it was, and says so', async () => {
  const { events } = await openLog(loadConfig(env));
  const token = await clientTokenOf(url);
  // Two at once are one.
  const [first, second] = await Promise.all([1, 2].map(async () => ask('POST', '/sandbox/reset', token)));
  await untilReady(url);
  await events.close();
  assert.equal(first?.status, 202, first?.text);
  assert.ok([202, 503].includes(second?.status ?? 0), second?.text);
  assert.equal(running.lines.filter((line) => line.includes('could not be reset: its data is as before')).length, 1);
  assert.equal(await gifts(), 1);
});

test('leaves the old data or the new, whole, whenever it is killed, and ends where it is stopped', async () => {
  for (const [wait, signal] of [
    [100, 'SIGKILL'],
    [50, 'SIGTERM'],
  ] as const) {
    await buy([{ phone_number: '+447700900123' }]);
    const before = await gifts();
    assert.equal((await reset()).status, 202);
    await sleep(wait);
    await running.end(signal);
    if (signal === 'SIGTERM') assert.equal(running.child.exitCode, 0, running.lines.join('\n'));
    await start();
    assert.ok([0, before].includes(await gifts()), `${wait} ms, ${signal}`);
  }
  assert.equal(await gifts(), 0);
});

test('ends the process, and says why, where it can not start again', async () => {
  writeFileSync(join(dir, 'token.key'), 'cut short');
  const ended = once(running.child, 'exit');
  assert.equal((await reset()).status, 202);
  assert.equal((await ended)[0], 1);
  assert.match(running.lines.join('\n'), /token\.key is not a whole key/);
});

test.run();
