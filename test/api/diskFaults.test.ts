import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { purchaseOf } from '../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../support/service/service.js';
import { DISK_FAULTS, failReads } from '../support/faults/sqliteFaults.js';
import { until } from '../support/assertions/until.js';

/** The longest that there is: the whole wait for a charge whose outcome nobody hears of. */
const CHARGE_WAIT_MS = 60_000;

const test = suite<{ service: Service; gift: string }>('reads that fail for a moment, over HTTP');

test.before(async (context) => {
  context.service = await startService({ split: false, env: { CHARGE_WAIT_MS: String(CHARGE_WAIT_MS) } });
  context.gift = (await buys(context.service)).gift;
});
test.after(async ({ service }) => {
  failReads();
  await service.close();
});

const buy = async ({ ask, userToken }: Service): Promise<Reply> =>
  ask('POST', '/api/v2/transactions', { token: await userToken('ann'), body: purchaseOf('latte') });

async function buys(service: Service): Promise<{ readonly gift: string; readonly tookMs: number }> {
  const began = performance.now();
  const bought = await buy(service);
  const tookMs = performance.now() - began;
  assert.is(bought.status, 201, bought.text);
  const gift = bought.json.data.gifts[0] as string;
  const token = await service.userToken('ann');
  await until(
    async () => (await service.ask('GET', `/api/v2/gifts/${gift}`, { token })).json?.data?.status_code === 'UC',
    'the gift to be issued',
  );
  return { gift, tookMs };
}

for (const fault of DISK_FAULTS) {
  test(`${fault[0]}: answers 503 and is not ready while it lasts; afterwards everything goes on`, async ({
    service,
    gift,
  }) => {
    const token = await service.userToken('ann');
    const told = service.log.length;
    failReads(fault);
    try {
      for (const reply of [
        await buy(service),
        await service.ask('GET', `/api/v2/gifts/${gift}`, { token }),
        await service.ask('GET', '/api/v2/transactions/unknown/gifts', { token }),
      ]) {
        assert.equal(
          [reply.status, reply.json, reply.headers.get('retry-after')],
          [503, { error: 'Service unavailable.' }, '1'],
          reply.text,
        );
      }
      // Followers that wait for something to be appended meet it when there is something.
      const ready = await service.ask('GET', '/readyz');
      assert.is(ready.status, 503);
      assert.match(
        ready.json.parts['event store'].detail,
        /^(its disk fails, or takes no more|what its disk gives is damaged)$/,
      );
      assert.ok(failReads(fault) > 0);
    } finally {
      failReads();
    }
    await until(async () => (await service.ask('GET', '/readyz')).status === 200, 'readiness');
    assert.ok((await buys(service)).tookMs < CHARGE_WAIT_MS, 'the outcome of the charge is heard of');
    assert.ok((await buys(service)).tookMs < CHARGE_WAIT_MS);
    assert.not.match(service.log.slice(told).join('\n'), /restore it from a backup/);
  });
}

test.run();
