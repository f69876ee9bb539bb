/** Files that go away, or are altered, under the running service: its data files, and its own program. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { suite } from 'uvu';
import { ROLES } from '../../src/service/config.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { codesOnCommandLine, codesOverHttp } from '../support/service/diagnosis.js';
import { releaseFolder } from '../support/service/releaseFolder.js';
import {
  type Reply,
  type ServiceProcess,
  request,
  startProcess,
  startService,
  untilReady,
  userTokenOf,
} from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const test = suite<{ dir: string; settings: Readonly<Record<string, string>> }>('files that go away under the service');

/** After this time everything is loaded (docs/deployment.md). */
const LOADED_MS = 6_000;

/** A data folder that has served: each test gets a copy. */
const served = mkdtempSync(join(tmpdir(), 'gift-files-'));
let settings: Readonly<Record<string, string>>;

test.before(async () => {
  const first = await startService({ dataDir: served, catalogue: CATALOGUE, engines: EMBEDDED, split: false });
  settings = first.settings;
  await first.close();
});
test.after(() => rmSync(served, { recursive: true, force: true }));
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-files-'));
  cpSync(served, context.dir, { recursive: true });
  context.settings = { ...settings, DATA_DIR: context.dir };
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

const purchase = async (url: string, token: string): Promise<Reply> =>
  request(`${url}/api/v2/transactions`, 'POST', { token, body: purchaseOf('latte') });
const redemption = async (url: string, token: string, gift: string): Promise<Reply> =>
  request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', { token, body: { location_id: 'bean-soho' } });

const REFUSED = 'under the service: writes are refused until it is started again';
const GONE = `was removed or replaced ${REFUSED}`;

for (const name of ['events.db-wal', 'events.db-shm', 'events.db']) {
  test(`refuses purchases while ${name} is missing, and loses nothing acknowledged`, async ({ dir, settings }) => {
    const service = await startProcess({ ...settings, CHARGE_WAIT_MS: '500' });
    const { url = '' } = service;
    await untilReady(url);
    const [token, support] = [await userTokenOf(url, 'ann'), await userTokenOf(url, 'sue')];
    const sold = async (reply: Reply): Promise<void> => {
      assert.equal(reply.status, 201, reply.text);
      acknowledged.push(reply.json.data.id as string);
    };
    const acknowledged: string[] = [];
    for (let n = 0; n < 3; n++) await sold(await purchase(url, token));
    renameSync(join(dir, name), join(dir, 'aside'));
    // One that is under way in the very moment may be brought into the file, and is sold then.
    const meanwhile = await purchase(url, token);
    if (meanwhile.status !== 503) await sold(meanwhile);
    assert.equal((await purchase(url, token)).status, 503);
    const ready = await request(`${url}/readyz`, 'GET');
    assert.deepEqual(
      [ready.status, ready.json.parts['event store']],
      [503, { ready: false, detail: `${name} ${GONE}` }],
    );
    assert.equal((await codesOverHttp(url, support))[0], 'event_store_unavailable');
    await service.end('SIGKILL');
    if (name === 'events.db') renameSync(join(dir, 'aside'), join(dir, name));
    await withLogIn(dir, async (log) => {
      for (const id of acknowledged) assert.ok((await log.read(transactionStream(id))).length > 0, id);
    });
  });
}

test("refuses purchases for good once the log's WAL was emptied in place", async ({ dir, settings }) => {
  const service = await startProcess({ ...settings, CHARGE_WAIT_MS: '500' });
  const { url = '' } = service;
  try {
    await untilReady(url);
    const token = await userTokenOf(url, 'ann');
    assert.equal((await purchase(url, token)).status, 201);
    truncateSync(join(dir, 'events.db-wal'));
    for (let n = 0; n < 5; n++) {
      assert.equal((await purchase(url, token)).status, 503);
      await wait(300);
    }
    const ready = await request(`${url}/readyz`, 'GET');
    assert.deepEqual(
      [ready.status, ready.json.parts['event store']],
      [503, { ready: false, detail: `events.db-wal was altered in place ${REFUSED}` }],
    );
  } finally {
    await service.end('SIGKILL');
  }
});

test('refuses what needs a record while read.db-wal is missing, and serves after a restart', async ({
  dir,
  settings,
}) => {
  const service = await startProcess(settings);
  const { url = '' } = service;
  await untilReady(url);
  await userTokenOf(url, 'ann');
  renameSync(join(dir, 'read.db-wal'), join(dir, 'aside'));
  await eventually(async () =>
    (await userTokenOf(url, 'ann').catch((error: Error) => error.message)).startsWith('no token: 503'),
  );
  const ready = await request(`${url}/readyz`, 'GET');
  assert.deepEqual(
    [ready.status, ready.json.parts['read store']],
    [503, { ready: false, detail: `read.db-wal ${GONE}` }],
  );
  assert.equal((await codesOnCommandLine(settings, url))[0], 'read_store_unavailable');
  await service.end('SIGKILL');
  assert.deepEqual(await codesOnCommandLine(settings, undefined), ['service_stopped']);
  const next = await startProcess(settings);
  await untilReady(next.url ?? '');
  assert.equal((await purchase(next.url ?? '', await userTokenOf(next.url ?? '', 'ann'))).status, 201);
  await next.end();
});

test('goes on with what is loaded after a deployment removed the release folder', async ({ settings }) => {
  const release = releaseFolder();
  const processes: ServiceProcess[] = [];
  try {
    for (const role of ROLES)
      processes.push(await startProcess({ ...settings, ROLES: role, LOG_LEVEL: 'info' }, release.main));
    const url = processes.find((one) => one.url !== undefined)?.url ?? '';
    await untilReady(url);
    await wait(LOADED_MS);
    release.remove();
    await servesEverything(url);
    await Promise.all(processes.map((one) => one.end()));
    assert.deepEqual(
      processes.map(({ child }) => child.exitCode),
      ROLES.map(() => 0),
    );
    assert.deepEqual(
      processes
        .flatMap(({ lines }) => lines)
        .filter((line) => /ENOENT|MODULE_NOT_FOUND|"level":"(error|fatal)"/.test(line)),
      [],
    );
  } finally {
    release.remove();
    await Promise.all(processes.map((one) => one.end('SIGKILL')));
  }
});

test('the release folder is taken away from a process of all roles', async ({ settings }) => {
  const release = releaseFolder();
  const service = await startProcess(settings, release.main);
  try {
    await untilReady(service.url ?? '');
    await wait(LOADED_MS);
    release.remove();
    await servesEverything(service.url ?? '');
    await service.end();
    assert.equal(service.child.exitCode, 0);
    assert.deepEqual(
      service.lines.filter((line) => /ENOENT|MODULE_NOT_FOUND|"level":"(error|fatal)"/.test(line)),
      [],
    );
  } finally {
    release.remove();
    await service.end('SIGKILL');
  }
});

/**
 * Sign-in, purchase with its charge and notification, redemption, many look-ups at once, search, operations and the
 * description: each may need something that was not needed before.
 */
async function servesEverything(url: string): Promise<void> {
  const [buyer, till, support] = await Promise.all([
    userTokenOf(url, 'ann'),
    userTokenOf(url, 'till-coffee'),
    userTokenOf(url, 'sue'),
  ]);
  const bought = await request(`${url}/api/v2/transactions`, 'POST', {
    token: buyer,
    body: purchaseOf(
      'latte',
      Array.from({ length: 30 }, () => ({ phone_number: '07700 900002' })),
    ),
  });
  assert.equal(bought.status, 201, bought.text);
  const gifts = bought.json.data.gifts as string[];
  const [gift = ''] = gifts;
  await eventually(
    async () =>
      (await request(`${url}/api/v2/gifts/${gift}`, 'GET', { token: buyer })).json.data?.gift_status === 'sent',
  );
  assert.equal((await redemption(url, till, gift)).status, 201);
  const looked = await Promise.all(
    gifts.flatMap((one) =>
      [1, 2, 3].map(async () =>
        request(`${url}/api/v2/gifts/${one}?embed[]=purchase.brand.stores`, 'GET', { token: buyer }),
      ),
    ),
  );
  assert.deepEqual(new Set(looked.map(({ status }) => status)), new Set([200]));
  const day = new Date().toISOString().slice(0, 10);
  for (const path of [
    '/api/v2/products?q=late',
    '/readyz',
    '/metrics',
    '/openapi.json',
    '/docs',
    '/docs/swagger-ui-bundle.js',
  ]) {
    assert.equal((await request(url + path, 'GET', { token: buyer })).status, 200, path);
  }
  for (const path of [
    `/ops/gifts/${gift}/history`,
    '/ops/projections',
    `/ops/payments/reconciliation?day=${day}`,
    '/ops/redemptions',
  ]) {
    const reply = await request(url + path, 'GET', { token: support });
    assert.ok(reply.status < 500, `${path}: ${reply.status} ${reply.text}`);
  }
  // Each needs a store of its own, also two at once.
  const verified = await Promise.all(
    ['gifts', 'transactions', 'parked'].map(async (name) =>
      request(`${url}/ops/projections/${name}/verification`, 'POST', { token: support, body: { reason: 'a test' } }),
    ),
  );
  for (const { status, text } of verified) assert.ok([200, 202].includes(status), text);
}

test.run();
