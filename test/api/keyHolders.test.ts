/**
 * Whose request a key waits for: one that is gone holds nobody up, one that is frozen and goes on does nothing twice
 * (docs/api/conventions.md#idempotency-keys).
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { notificationStream } from '../../src/domain/notification.js';
import type { Engines } from '../../src/ports/engines.js';
import { processLife } from '../../src/runtime/coordination/processLife.js';
import { openTestEngines } from '../support/engines/engines.js';
import { buyOne, purchaseOf, redeem, refused, unredeem } from '../support/service/giftFlow.js';
import {
  type Reply,
  type ServiceProcess,
  request,
  startProcess,
  startService,
  userTokenOf,
} from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('holders of idempotency keys');

/** The life of a process of this machine that has ended: nothing else has this id and began then. */
function endedLife(): string {
  const [boot, space, id, startedAt] = (processLife() ?? '').split('/');
  return [boot, space, id, Number(startedAt) + 1].join('/');
}

test('gives no refusal of a frozen process whose key another one took, and has one effect', async () => {
  // The first request reads the gift, and goes on only once the second has been answered, which takes its process for
  // gone.
  let freeze: { readonly frozen: Promise<void>; seen(): void } | undefined;
  let gone = false;
  const through = (engines: Engines): Engines => ({
    ...engines,
    events: {
      ...engines.events,
      async read(stream, options) {
        const history = await engines.events.read(stream, options);
        const now = freeze;
        if (now === undefined || !stream.startsWith('gift-')) return history;
        freeze = undefined;
        now.seen();
        await now.frozen;
        return history;
      },
    },
    store: {
      ...engines.store,
      records: {
        ...engines.store.records,
        // As if another process had taken the key, which is never seen again.
        async get<V>(key: string) {
          const record = await engines.store.records.get<V>(key);
          if (!gone || record === undefined || !key.startsWith('idempotency:')) return record;
          return { ...record, value: { ...record.value, holder: { process: 'gone', life: endedLife() } } };
        },
      },
    },
  });
  const other = await startService({ app: { through } });
  try {
    for (const refusedFirst of [false, true]) {
      const gift = await buyOne(other);
      const key = `frozen-${String(refusedFirst)}`;
      // Nobody but the request is to read the gift from here on.
      await eventually(
        async () =>
          (await other.events.read(notificationStream(gift))).length > 0 ||
          (await other.events.read(giftStream(gift))).length > 0,
      );
      await sleep(300);
      const redeeming = (): Promise<Reply> => redeem(other, gift, 'till-coffee', 'bean-soho', { key });
      if (refusedFirst) assert.equal((await redeem(other, gift)).status, 201);
      let thaw = (): void => undefined;
      const seen = new Promise<void>((resolve) => {
        freeze = { frozen: new Promise<void>((go) => (thaw = go)), seen: resolve };
      });
      const first = redeeming();
      await seen;
      if (refusedFirst) assert.equal((await unredeem(other, gift)).status, 200);
      gone = true;
      const second = await redeeming();
      gone = false;
      assert.equal(second.status, 201, second.text);
      thaw();
      const late = await first;
      // It reads again before it refuses where it appends; what it read before it was frozen it may not tell.
      assert.ok(late.status === 503 || (late.status === 201 && late.text === second.text), late.text);
      assert.deepEqual([(await redeeming()).status, (await redeeming()).text], [201, second.text]);
      const redeemed = (await other.events.read(giftStream(gift))).filter(({ type }) => type === 'GiftRedeemed').length;
      assert.equal(redeemed, refusedFirst ? 2 : 1);
    }
  } finally {
    await other.close();
  }
});

test('answers the key at once with one effect after a kill in the middle of a purchase', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-killed-'));
  const engines = await openTestEngines();
  const setUp = await startService({ dataDir, engines, catalogue: CATALOGUE });
  const env = { ...setUp.settings, CHARGE_WAIT_MS: '20000' };
  let running: ServiceProcess | undefined;
  try {
    await setUp.close();
    running = await startProcess(env);
    const token = await userTokenOf(running.url ?? '', 'ann');
    const body = purchaseOf('latte', [{}], { reference: 'pm_card_slow' });
    const buying = (): Promise<Reply> =>
      request(`${running?.url ?? ''}/api/v2/transactions`, 'POST', { token, body, key: 'killed' });
    const first = buying().catch((error: unknown) => error);
    await sleep(1_000);
    refused(await buying(), 409, 'Request in progress.');
    await running.end('SIGKILL');
    assert.ok((await first) instanceof Error, 'nobody was told what came of it');
    running = await startProcess(env);
    const statuses: number[] = [];
    for (;;) {
      const { status } = await buying();
      statuses.push(status);
      if (status !== 503) break;
      await sleep(50);
    }
    assert.equal(statuses.at(-1), 201, statuses.join());
    assert.ok(!statuses.includes(409));
    await running.end();
    running = undefined;
    const after = await startService({ dataDir, engines });
    try {
      const bought: string[] = [];
      for await (const batch of after.events.readAll(undefined, { types: ['GiftsPurchased'] }))
        bought.push(...batch.events.map(({ id }) => id));
      assert.equal(bought.length, 1);
    } finally {
      await after.close();
    }
  } finally {
    await running?.end('SIGKILL');
    await engines.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test.run();
