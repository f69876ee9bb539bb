/** An erasure that has to wait for read models keeps no process from its requests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { storeErasure } from '../../src/ops/people/erasure/erasureRecord.js';
import { accountsProjection } from '../../src/projections/accounts.js';
import { asBuild } from '../../src/runtime/readmodels/buildNumbers.js';
import { collectionOf } from '../../src/runtime/readmodels/projection.js';
import { putRebuild } from '../../src/runtime/readmodels/rebuildRecord.js';
import { loadConfig } from '../../src/service/config.js';
import { openLog } from '../../src/service/engines.js';
import { eventually } from '../support/assertions/until.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { type Service, startService } from '../support/service/service.js';

const test = suite('erasures that wait for read models');
const LONG_AGO = '2026-01-01T00:00:00.000Z';

/** A rebuild that met an altered event, and waits for a person. */
async function leaveRebuild({ openStore }: Service): Promise<void> {
  const store = await openStore();
  try {
    const from = await store.active('accounts');
    const target = accountsProjection.version * 1_000_000 + 1;
    await store.ensure(collectionOf(asBuild(accountsProjection, target)));
    const left = { by: 'sue', at: LONG_AGO, failure: 'an event was altered' };
    await putRebuild(store, 'accounts', { target, from, kind: 'rebuild', state: 'building', ...left }, 0);
  } finally {
    await store.close();
  }
}

async function leaveErasure(dataDir: string): Promise<void> {
  const { events, keys } = await openLog(loadConfig({ DATA_DIR: dataDir }));
  try {
    const requested = { reason: 'asked for it', by: { user: 'sue' }, at: LONG_AGO };
    await storeErasure(keys, { id: 'A'.repeat(22), person: { kind: 'user', userId: 'bob' }, ...requested });
  } finally {
    await events.close();
  }
}

test('a process stays ready, and says what an unfinished erasure waits for', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-waiting-'));
  try {
    const before = await startService({ dataDir, engines: EMBEDDED, catalogue: CATALOGUE });
    try {
      await leaveRebuild(before);
    } finally {
      await before.close();
    }
    await leaveErasure(dataDir);
    const service = await startService({ dataDir, engines: EMBEDDED });
    try {
      const { ready, detail, status } = await eventually(async () => {
        const answer = await service.ask('GET', '/readyz');
        const part = answer.json?.parts?.erasures as { ready: boolean; detail: string } | undefined;
        return part?.detail.startsWith('fails since') === true && { ...part, status: answer.status };
      }, 'the erasure to wait');
      assert.equal([status, ready], [200, true], detail);
      assert.match(detail, /: read models have not followed an erasure yet$/);
    } finally {
      await service.close();
    }
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test.run();
