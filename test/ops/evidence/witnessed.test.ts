import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { headKeys } from '../../../src/ops/evidence/headKeys.js';
import { lastSignedHead } from '../../../src/ops/evidence/signedHeads.js';
import { parseCheckpoint } from '../../../src/runtime/evidence/checkpoint.js';
import { cosignatureVerifier } from '../../../src/runtime/evidence/cosignature.js';
import { openNote } from '../../../src/runtime/evidence/signedNote.js';
import { type WitnessClient, witnessClient } from '../../../src/runtime/evidence/witnessClient.js';
import { type RunningWitness, startWitness } from '../../support/evidence/witness.js';
import { type KeptLog, KEYS, keptLog } from '../../support/fixtures/keptTree.js';

const test = suite<{ log: KeptLog; dir: string; running: RunningWitness; client: WitnessClient }>('a witnessed log');

test.before.each(async (context) => {
  context.log = await keptLog();
  context.dir = mkdtempSync(join(tmpdir(), 'witness-of-log-'));
  const { logId } = context.log.events;
  const [vkey = ''] = headKeys(KEYS, `test/log/${logId}`).verifierKeys;
  context.running = await startWitness(context.dir, '--name', 'accountant.example/w', '--log', vkey);
  context.client = witnessClient({ url: context.running.url, key: context.running.vkey });
});
test.after.each(async ({ log, dir, running }) => {
  await running.stop();
  await log.close();
  rmSync(dir, { recursive: true });
});

/** Of the published head, where the witness has cosigned it. */
async function cosigned({ folder }: KeptLog, running: RunningWitness): Promise<number> {
  try {
    return parseCheckpoint(openNote((await folder.head()) ?? '', [cosignatureVerifier(running.vkey)]).body).size;
  } catch {
    return 0;
  }
}

test('publishes each head with its cosignature, also after a restart', async ({ log, running, client }) => {
  for (const count of [3, 600, 70]) {
    await log.fill(count);
    const end = Number(await log.events.end());
    await log.keep(async () => (await cosigned(log, running)) >= end, { witnesses: [client] });
    assert.equal(await cosigned(log, running), (await lastSignedHead(log.events))?.size);
  }
  assert.equal((await log.verify()).agrees, true);
});

test('signs on where its witness does not answer, and asks it for the next head', async ({ log, running, client }) => {
  const silent = witnessClient({ url: 'http://127.0.0.1:1', key: running.vkey });
  await log.fill(3);
  await log.keepUntilSigned({ witnesses: [silent] });
  assert.equal(await cosigned(log, running), 0);
  await log.fill(3);
  await log.keep(async () => (await cosigned(log, running)) > 0, { witnesses: [client] });
});

test('put back with all that it keeps, it is found by its witness alone', async ({ log, running, client }) => {
  await log.fill(300);
  await log.keep(async () => (await cosigned(log, running)) >= 300, { witnesses: [client] });
  const copy = mkdtempSync(join(tmpdir(), 'whole-copy-'));
  await log.tamper(() => cpSync(log.dir, copy, { recursive: true }));
  await log.fill(50);
  await log.keep(async () => (await cosigned(log, running)) >= 350, { witnesses: [client] });
  await log.tamper(() => {
    rmSync(log.folder.path, { recursive: true });
    cpSync(copy, log.dir, { recursive: true });
  });
  rmSync(copy, { recursive: true });
  assert.equal((await log.verify()).agrees, true, 'nothing here can tell');
  const note = JSON.stringify(await client.latest(`test/log/${log.events.logId}`, { timeoutMs: 5_000 }));
  assert.match(note, /"outcome":"cosigned"/);
  await log.fill(5);
  const troubles: (Error | undefined)[] = [];
  await log.keep(async () => troubles.length > 0, {
    witnesses: [witnessClient({ url: running.url, key: running.vkey })],
    onTrouble: (error) => troubles.push(error),
  });
  assert.equal(troubles[0]?.name, 'WitnessDisagreesError');
  assert.match(troubles[0].message, /accountant\.example\/w has cosigned \d+ events, which this log of \d+ does not/);
});

test.run();
