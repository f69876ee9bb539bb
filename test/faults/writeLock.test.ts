/** Another connection holds the read store's write lock again and again, as a backup or a person with a shell may. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { EMBEDDED } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { purchaseOf } from '../support/service/giftFlow.js';
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
import { eventually } from '../support/assertions/until.js';

const test = suite('the read store is locked by another');
/** About as long as a lease of 3 s can wait for its renewal. */
const HELD_MS = 2_800;
const TIMES = Number(process.env['TEST_FAULTS'] ?? 4);

test('delivers every event to a webhook endpoint, and charges every purchase', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-lock-'));
  const first = await startService({ dataDir: dir, catalogue: CATALOGUE, engines: EMBEDDED, split: false });
  await first.close();
  const receiver = await openReceiver();
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
    const ann = await userTokenOf(url, 'ann');
    const created = await request(`${url}/api/v2/webhook-endpoints`, 'POST', {
      token: app,
      body: { url: receiver.url },
    });
    assert.equal(created.status, 201, created.text);
    // From its creation on.
    const begin = created.headers.get('gift-position') ?? '';
    let over = false;
    let bought = 0;
    const buying = (async () => {
      while (!over) {
        const reply = await request(`${url}/api/v2/transactions`, 'POST', { token: ann, body: purchaseOf('latte') });
        if (reply.status === 201) bought += 1;
        await sleep(50);
      }
    })();
    const other = new Database(join(dir, 'read.db'), { timeout: 20_000 });
    for (let n = 0; n < TIMES; n++) {
      other.exec('BEGIN IMMEDIATE');
      await sleep(HELD_MS);
      other.exec('ROLLBACK');
      await sleep(200);
    }
    other.close();
    over = true;
    await buying;
    assert.ok(bought > 0);
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
