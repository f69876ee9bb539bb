/** The service as it is run for real, on the engines that TEST_ENGINES chooses. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { eventually } from '../support/assertions/until.js';
import { openTestEngines } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { buy, redeem } from '../support/service/giftFlow.js';
import { runs } from '../support/service/mainProcess.js';
import { type Service, request, startProcess, startService, untilReady } from '../support/service/service.js';

const test = suite<{ dir: string }>('service on its engines');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-on-engines-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

test('does not start without the key that its log was made with, and makes no other', async ({ dir }) => {
  const engines = await openTestEngines();
  try {
    const service = await startService({ dataDir: dir, engines, catalogue: CATALOGUE });
    await service.close();
    const other = await runs({ ...service.settings, HASH_KEY: 'k'.repeat(43) });
    assert.equal(other.code, 1);
    assert.match(other.errors, /^HASH_KEY: this is not the key that the event log was made with: /);
    if (engines.servers.has('eventstoredb')) return;
    rmSync(join(dir, 'hash.key'));
    const lost = await runs(service.settings);
    assert.equal(lost.code, 1);
    assert.match(lost.errors, /^HASH_KEY: the key that the event log was made with is missing: put .*\n$/);
    assert.ok(!existsSync(join(dir, 'hash.key')));
  } finally {
    await engines.close();
  }
});

test('loses nothing acknowledged, killed with -9 under load again and again', async ({ dir }) => {
  const engines = await openTestEngines();
  const first = await startService({ dataDir: dir, engines, catalogue: CATALOGUE });
  const gifts = await buy(first, 'latte', Array(120).fill({}));
  const token = await first.userToken('ann');
  await first.close();

  const acknowledged = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const service = await startProcess(first.settings);
    const url = service.url ?? '';
    await untilReady(url);
    // Each round has gifts of its own: of those before, any number may be redeemed without its answer.
    const batch = gifts.slice(round * 40, (round + 1) * 40);
    const requested = batch.map(async (gift) => {
      const reply = await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', {
        token,
        body: { location_id: 'bean-soho' },
      }).catch(() => undefined);
      if (reply?.status === 201) acknowledged.add(gift);
    });
    await eventually(() => batch.filter((gift) => acknowledged.has(gift)).length >= 10);
    await service.end('SIGKILL');
    await Promise.all(requested);
  }
  const left = gifts.filter((gift) => !acknowledged.has(gift));

  const service: Service = await startService({ dataDir: dir, engines });
  try {
    for (const gift of acknowledged) {
      const events = await service.events.read(giftStream(gift));
      assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1, gift);
      const shown = await service.ask('GET', `/api/v2/gifts/${gift}`, { token });
      assert.equal(shown.json.data.gift_status, 'redeemed');
    }
    for (const gift of left) {
      const reply = await redeem(service, gift, 'ann');
      const events = await service.events.read(giftStream(gift));
      assert.ok(reply.status === 201 || reply.status === 405);
      assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1, gift);
    }
  } finally {
    await service.close();
    await engines.close();
  }
});

test('works end to end with one process per role', async () => {
  const service = await startService({ split: true });
  try {
    const [gift] = await buy(service, 'latte', [{ phone_number: '07700 900002' }]);
    const reply = await redeem(service, gift ?? '', 'bob');
    assert.equal(reply.status, 201);
    const shown = await service.ask('GET', `/api/v2/gifts/${gift}`, {
      token: await service.userToken('bob'),
      headers: { 'gift-position': reply.headers.get('gift-position') ?? '' },
    });
    assert.equal(shown.json.data.gift_status, 'redeemed');
  } finally {
    await service.close();
  }
});

test.run();
