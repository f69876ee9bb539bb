import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PROJECTIONS } from '../../src/projections/index.js';
import type { ProcessManagerStatus, ReadModelStatus } from '../../src/ops/status/status.js';
import { openServiceStatus } from '../../src/ops/status/serviceStatus.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { type Json, startService } from '../support/service/service.js';
import { fillDisk, NO_MOUNT, smallDisk } from '../support/faults/smallDisk.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { eventually, until } from '../support/assertions/until.js';

const test = suite('a full disk, over HTTP');
const disk = smallDisk(24);

testWhere(
  test,
  disk !== undefined,
  NO_MOUNT,
  'no process is ready while writes are refused, the status says that the one that had led lives, and all goes on once there is room',
  async () => {
    const { dir } = disk!;
    const ballast = join(dir, 'ballast');
    const service = await startService({
      split: false,
      dataDir: dir,
      catalogue: CATALOGUE,
      engines: EMBEDDED,
      env: { CHARGE_WAIT_MS: '300' },
    });
    const store = await service.openStore();
    const status = openServiceStatus({ events: service.events, store, projections: PROJECTIONS });
    const led = async () =>
      (await status.look()).filter(
        (one): one is ReadModelStatus | ProcessManagerStatus =>
          one.kind !== 'part' && ['gifts', 'purchase'].includes(one.name),
      );
    const buy = async (gifts: number): Promise<number> =>
      (
        await service.ask('POST', '/api/v2/transactions', {
          token: await service.userToken('ann'),
          body: purchaseOf('latte', Array(gifts).fill({})),
        })
      ).status;
    try {
      await service.userToken('ann');
      const before = await led();
      assert.ok(before.every(({ holder, last_holder: last }) => holder !== null && last === null));
      fillDisk(ballast);
      await until(async () => (await buy(500)) === 503, 'a write that is refused');
      const ready = await eventually(async () => {
        const { status: code, json } = await service.ask('GET', '/readyz');
        return code === 503 ? (json.parts as Record<string, Json>) : undefined;
      });
      const told = Object.values(ready)
        .filter((part) => !part.ready)
        .map((part) => part.detail as string);
      assert.ok(
        told.some((detail) => detail.endsWith('its disk is full')),
        told.join('\n'),
      );
      // Leases can't be renewed either.
      await until(
        async () =>
          Object.values((await service.ask('GET', '/readyz')).json.parts as Record<string, Json>).some(({ detail }) =>
            /^fails since .+: its disk is full$/.test(detail as string),
          ),
        'a part that fails',
      );
      const idle = await eventually(async () => {
        const found = await led();
        return found.every(({ holder }) => holder === null) ? found : undefined;
      });
      assert.equal(
        idle.map(({ last_holder: last }) => [last?.process, last?.lives]),
        before.map(({ holder }) => [holder, true]),
      );
      rmSync(ballast);
      await until(async () => (await service.ask('GET', '/readyz')).status === 200, 'readiness');
      assert.is(await buy(1), 201);
      await until(async () => (await led()).every(({ holder }) => holder !== null), 'leaders');
    } finally {
      rmSync(ballast, { force: true });
      await status.close();
      await store.close();
      await service.close();
    }
  },
);

test.after(() => disk?.remove());

test.run();
