import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { headKeys, originOf } from '../../src/ops/evidence/heads/signedHeads.js';
import { cosigner, formatCheckpoint } from '../../src/ops/evidence/format/checkpoint.js';
import { type NoteSigner, signNote } from '../../src/ops/evidence/format/signedNote.js';
import { WITNESS_KEY, WITNESS_VKEY } from '../support/evidence/bundles.js';
import { type StoredLog, KEYS, storedLog } from '../support/fixtures/storedTree.js';
import { gift } from '../support/service/cli.js';

const test = suite<{ dir: string; log: StoredLog }>('cli: a false witness');
const NOW = 1_777_887_000;

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'false-witness-'));
  context.log = await storedLog();
  await context.log.fill(5);
  await context.log.keepUntilSigned();
});
test.after.each(async ({ dir, log }) => {
  await log.close();
  rmSync(dir, { recursive: true });
});

/** Shows a root that it has made up as the log's. @param others who sign it, too */
async function withWord<T>(
  logId: string,
  others: readonly NoteSigner[],
  run: (env: Record<string, string>) => Promise<T>,
): Promise<T> {
  const head = { origin: originOf('test', logId), size: 5, root: randomBytes(32) };
  const note = signNote(formatCheckpoint(head), [...others, cosigner(WITNESS_KEY, () => NOW)]);
  const server = createServer((_, response) => void response.end(note)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return await run({ SEAL_KEY: KEYS[0] ?? '', SEAL_WITNESSES: `${url} ${WITNESS_VKEY}` });
  } finally {
    server.close();
  }
}

const LEFT_OUT = /^gift: the last word of the witness witness\.example\/w1 is left out: /;

test('is named, and accuses no log that is what was signed', async ({ log, dir }) => {
  const { logId } = log.events;
  const origin = originOf('test', logId);
  const { keyId } = headKeys(KEYS, origin).verifiers[0]!;
  const forged: NoteSigner = { name: origin, keyId, sign: () => randomBytes(64) };
  for (const [n, others] of [[], [forged]].entries())
    await withWord(logId, others, async (env) => {
      const verified = await gift({ ...env, DATA_DIR: log.dir }, ['audit', 'verify']);
      assert.equal(verified.code, 0, verified.out);
      assert.match(verified.err, LEFT_OUT);
      const file = join(dir, `${n}.log`);
      assert.equal((await gift({ ...env, DATA_DIR: log.dir }, ['backup', file])).code, 0);
      const fresh = join(dir, `fresh-${n}`);
      const restored = await gift({ ...env, DATA_DIR: fresh }, ['restore', file, '--reason', 'a drill']);
      assert.equal(restored.code, 0, restored.err);
    });
});

test('is believed where the log has signed the other root, too', async ({ log }) => {
  const { logId } = log.events;
  await withWord(logId, headKeys(KEYS, originOf('test', logId)).signers, async (env) => {
    const { code, out } = await gift({ ...env, DATA_DIR: log.dir }, ['audit', 'verify']);
    assert.equal(code, 1);
    assert.match(out, /the last word of the witness witness\.example\/w1, of 5 events: it is of other events/);
  });
});

test('is asked of a log, and of a backup, that have no head yet', async ({ dir }) => {
  const young = await storedLog();
  await young.fill(3);
  const { logId } = young.events;
  const { signers } = headKeys(KEYS, originOf('test', logId));
  await withWord(logId, signers, async (env) => {
    const settings = { ...env, PUBLIC_URL: 'https://test', DATA_DIR: young.dir };
    const verified = await gift(settings, ['audit', 'verify']);
    assert.equal(verified.code, 1);
    assert.match(verified.err, /the log was cut off at its end: 2 events are missing from number 4 on/);
    const file = join(dir, 'young.log');
    assert.equal((await gift(settings, ['backup', file])).code, 0);
    const elsewhere = { ...settings, DATA_DIR: join(dir, 'fresh') };
    const refused = await gift(elsewhere, ['restore', file, '--reason', 'a drill']);
    assert.equal(refused.code, 1, refused.out);
    assert.match(refused.err, /^gift: the backup is behind a signed head: /);
  });
  await young.close();
});

test.run();
