import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { gift } from '../support/service/cli.js';
import { openTestEngines } from '../support/engines/engines.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { buy, purchaseOf } from '../support/service/giftFlow.js';
import {
  type Json,
  request,
  type ServiceProcess,
  startProcess,
  startService,
  untilReady,
  userTokenOf,
} from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';

const test = suite('restore drill');
const PUBLIC_URL = 'https://gifts.test';

/** What a write acknowledged: where the log stood, and the gift that it is about. */
interface Acknowledged {
  readonly gift: string;
  readonly position: string;
}

test('restores a backup under load elsewhere with everything acknowledged before it', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'restore-drill-'));
  const [data, fresh, file] = [join(dir, 'data'), join(dir, 'fresh'), join(dir, 'gift.log')];
  let process: ServiceProcess | undefined;
  try {
    mkdirSync(data);
    // Backups of this kind are of the embedded log alone.
    const first = await startService({
      dataDir: data,
      catalogue: CATALOGUE,
      split: false,
      engines: await openTestEngines(new Set()),
    });
    const gifts = await buy(first, 'latte', Array(400).fill({}));
    await first.close();

    process = await startProcess({ DATA_DIR: data, PORT: '0', PUBLIC_URL });
    const url = process.url ?? '';
    await untilReady(url);
    const ann = await userTokenOf(url, 'ann');
    const redeemed: Acknowledged[] = [];
    const bought: Acknowledged[] = [];
    let loading = true;
    const left = [...gifts];
    const redeem = async (): Promise<void> => {
      for (let one = left.pop(); one !== undefined && loading; one = left.pop()) {
        const reply = await request(`${url}/api/v2/gifts/${one}/redemptions`, 'POST', {
          token: ann,
          body: { location_id: 'bean-soho' },
        }).catch(() => undefined);
        if (reply?.status === 201)
          redeemed.push({ gift: one, position: positionIn(reply.headers.get('gift-position')) });
      }
    };
    const purchase = async (): Promise<void> => {
      while (loading) {
        const reply = await request(`${url}/api/v2/transactions`, 'POST', {
          token: ann,
          body: purchaseOf('mocha', [{ user_id: 'bob' }]),
        }).catch(() => undefined);
        if (reply?.status === 201)
          bought.push({
            gift: reply.json.data.gifts[0] as string,
            position: positionIn(reply.headers.get('gift-position')),
          });
      }
    };
    const load = [...Array.from({ length: 4 }, redeem), purchase()];
    while (redeemed.length < 40 || bought.length < 3) await new Promise(setImmediate);
    const before = { redeemed: redeemed.length, bought: bought.length };

    const made = await gift(data, ['backup', file, '--json']);
    assert.equal(made.code, 0, made.err);
    const { position, events } = made.records()[0] as { position: string; events: number };
    // The load went on meanwhile, and goes on.
    const during = redeemed.length + bought.length;
    while (redeemed.length + bought.length < during + 20 && left.length > 0) await new Promise(setImmediate);
    loading = false;
    await Promise.all(load);

    const kept = [...redeemed, ...bought].filter((one) => one.position <= position);
    const lost = [...redeemed, ...bought].filter((one) => one.position > position);
    assert.ok(
      kept.length >= before.redeemed + before.bought,
      'what was acknowledged before the backup began is before its position',
    );
    assert.ok(lost.length > 0, 'the load went on after the backup');
    const requested = new Map<string, Json>();
    for (const { gift: one } of kept.slice(0, 60))
      requested.set(
        one,
        (
          await request(
            `${url}/api/v2/gifts/${one}?embed[]=redemption&embed[]=message&embed[]=purchase.brand.stores`,
            'GET',
            { token: ann },
          )
        ).json,
      );
    await process.end('SIGKILL');

    const keys = join(dir, 'keys');
    assert.equal((await gift(data, ['keys', 'backup', keys])).err, '');
    mkdirSync(fresh);
    for (const key of ['hash.key', 'master.key', 'token.key']) cpSync(join(data, key), join(fresh, key));
    const restored = await gift(fresh, ['restore', file, '--reason', 'a drill', '--json']);
    assert.equal(restored.code, 0, restored.err);
    assert.equal(restored.records()[0]?.['events'], events);

    assert.match((await gift(fresh, ['keys', 'restore', keys])).out, / rows of .* are in the key store/);
    process = await startProcess({ DATA_DIR: fresh, PORT: '0', PUBLIC_URL });
    const there = process.url ?? '';
    await untilReady(there);
    const token = await userTokenOf(there, 'ann');
    for (const [one, answer] of requested) {
      const reply = await request(
        `${there}/api/v2/gifts/${one}?embed[]=redemption&embed[]=message&embed[]=purchase.brand.stores`,
        'GET',
        { token },
      );
      assert.deepEqual(reply.json, answer);
    }
    await withLogIn(fresh, async (log) => {
      for (const { gift: one } of redeemed) {
        const types = (await log.read(giftStream(one))).map(({ type }) => type);
        assert.equal(
          types.filter((type) => type === 'GiftRedeemed').length,
          kept.some((each) => each.gift === one) ? 1 : 0,
          one,
        );
      }
      for (const { gift: one } of bought.filter((each) => kept.includes(each)))
        assert.ok((await request(`${there}/api/v2/gifts/${one}`, 'GET', { token })).status === 200);
    });
    // It goes on from there: what was not redeemed by then can be, what was cannot.
    const [open] = lost.filter(({ gift: one }) => redeemed.some((each) => each.gift === one));
    if (open !== undefined)
      assert.equal(
        (
          await request(`${there}/api/v2/gifts/${open.gift}/redemptions`, 'POST', {
            token,
            body: { location_id: 'bean-soho' },
          })
        ).status,
        201,
      );
    const [spent] = redeemed;
    assert.equal(
      (
        await request(`${there}/api/v2/gifts/${spent?.gift ?? ''}/redemptions`, 'POST', {
          token,
          body: { location_id: 'bean-soho' },
        })
      ).status,
      405,
    );
    await process.end();
    process = undefined;
  } finally {
    await process?.end('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
});

/** `Gift-Position` names the log, too. */
function positionIn(header: string | null): string {
  const found = /(\d{16})$/.exec(header ?? '')?.[1];
  assert.ok(found !== undefined, String(header));
  return found;
}

test.run();
