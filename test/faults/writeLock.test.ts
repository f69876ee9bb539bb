/** Another connection holds the read store's write lock again and again, as a backup or a person with a shell may. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { WEBHOOK_LEASE_MS } from '../../src/deliveries/deliveries.js';
import { deferred } from '../../src/lib/async/deferred.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { codesOverHttp } from '../support/service/diagnosis.js';
import { openReceiver } from '../support/service/receiver.js';
import {
  clientTokenOf,
  type Json,
  request,
  startProcess,
  startService,
  untilReady,
  userTokenOf,
} from '../support/service/service.js';
import { eventually, until } from '../support/assertions/until.js';

const test = suite('the read store is locked by another');
/** A little longer than the lease of webhooks lasts. */
const HELD_MS = WEBHOOK_LEASE_MS + 30;
/** With it less than two waits of a writer for the lock (5 s each): a renewal is still under way, and stored late. */
const ENDS_MS = 700;
/** Attempts to one endpoint that go at once. */
const AT_ONCE = 8;
/** More than an endpoint has waiting untried before it reads no more: so no new event starts it again. */
const RECEIVERS = 150;
const TIMES = Number(process.env['TEST_FAULTS'] ?? 1);

test('delivers every event to a webhook endpoint, and charges every purchase', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-lock-'));
  const first = await startService({ dataDir: dir, catalogue: CATALOGUE, engines: EMBEDDED, split: false });
  await first.close();
  let answers = deferred<void>();
  let requested = 0;
  const receiver = await openReceiver(async (_, response) => {
    requested += 1;
    await answers.promise;
    requested -= 1;
    response.end();
  });
  const service = await startProcess({
    ...first.settings,
    DATA_DIR: dir,
    WEBHOOK_PRIVATE_ADDRESSES: 'allow',
    CHARGE_WAIT_MS: '0',
  });
  try {
    const { url = '' } = service;
    await untilReady(url);
    const app = await clientTokenOf(url);
    const [ann, support] = [await userTokenOf(url, 'ann'), await userTokenOf(url, 'sue')];
    const created = await request(`${url}/api/v2/webhook-endpoints`, 'POST', {
      token: app,
      body: { url: receiver.url },
    });
    assert.equal(created.status, 201, created.text);
    // From its creation on.
    const begin = created.headers.get('gift-position') ?? '';
    const fed = async (): Promise<Json[]> => {
      const all: Json[] = [];
      for (let after = begin, more = true; more;) {
        const page = await request(`${url}/api/v2/events?limit=500&after=${encodeURIComponent(after)}`, 'GET', {
          token: app,
        });
        if (page.status !== 200) return [];
        all.push(...(page.json.data as Json[]));
        after = page.json.next as string;
        more = page.json.has_more as boolean;
      }
      return all;
    };
    const issued = (events: Json[]): number => events.filter(({ type }: Json) => type === 'gift.issued').length;
    const delivered = async (): Promise<number> => {
      const { text } = await request(`${url}/metrics`, 'GET');
      return Number(/^gift_webhook_deliveries_total\{outcome="delivered"\} (\d+)$/m.exec(text)?.[1]);
    };
    const ask = async (method: string, path: string, body: Json): Promise<void> => {
      const endpoint = `${url}/api/v2/webhook-endpoints/${created.json.data.id as string}`;
      const reply = await request(endpoint + path, method, { token: app, body });
      assert.ok(reply.status < 300, reply.text);
    };
    const receivers = Array.from({ length: RECEIVERS }, (_, n) => ({ phone_number: `+447700900${100 + n}` }));
    let bought = 0;
    const buy = async (...more: [receivers?: readonly object[]]): Promise<void> => {
      const reply = await request(`${url}/api/v2/transactions`, 'POST', {
        token: ann,
        body: purchaseOf('latte', ...more),
      });
      // While the lock is held it may be busy.
      assert.ok(reply.status === 201 || reply.status === 503, reply.text);
      if (reply.status === 201) bought += more[0]?.length ?? 1;
    };
    const other = new Database(join(dir, 'read.db'), { timeout: 20_000 });
    answers.resolve();
    await buy();
    await until(() => receiver.received.length > 0, 'the first delivery');
    // What waited when the endpoint was disabled is recovered, too.
    const since = new Date(0).toISOString();
    for (let n = 0; n < TIMES; n++) {
      await ask('PATCH', '', { disabled: true });
      await buy(receivers);
      await until(async () => issued(await fed()) >= bought, 'a backlog');
      answers = deferred();
      await ask('PATCH', '', { disabled: false });
      await ask('POST', '/recover', { since });
      await until(() => requested === AT_ONCE, 'as many attempts as go at once');
      const before = await delivered();
      other.exec('BEGIN IMMEDIATE');
      let over = false;
      const buying = (async () => {
        for (; !over; await sleep(200)) await buy();
      })();
      // Leases run out before the first write has waited in vain for the lock: it is named a moment later.
      const isNamed = async (): Promise<boolean> =>
        (await codesOverHttp(url, support)).includes('read_store_unavailable');
      await Promise.all([until(isNamed, 'the finding that the read store takes no writes'), sleep(HELD_MS)]);
      // They end where this process may start nothing, since its lease was not renewed.
      answers.resolve();
      const ended = until(async () => (await delivered()) >= before + AT_ONCE, 'the ends of these attempts');
      await Promise.race([ended, sleep(ENDS_MS)]);
      other.exec('ROLLBACK');
      over = true;
      await Promise.all([buying, ended]);
    }
    other.close();
    const all = await eventually(async () => {
      const events = await fed();
      return issued(events) >= bought ? events : undefined;
    }, 'every purchase to be charged');
    await eventually(() => {
      const received = new Set(receiver.received.map(({ id }) => id));
      return all.every(({ id }: Json) => received.has(id as string));
    }, 'every event to be delivered');
  } finally {
    await service.end('SIGKILL');
    await receiver.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
