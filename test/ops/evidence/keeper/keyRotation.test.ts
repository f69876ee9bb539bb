import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifiersOf } from '../../../../src/ops/evidence/heads/signedHeads.js';
import { firstFault } from '../../../../src/ops/evidence/verify/describe.js';
import { AlteredLogRefusedError, refuseAlteredLog } from '../../../../src/ops/readmodels/refuseAlteredLog.js';
import { type StoredLog, KEYS, storedLog } from '../../../support/fixtures/storedTree.js';

const NEW = 'another key of the tests has thirty-two bytes at least';
const test = suite<{ log: StoredLog }>('a log whose key was changed');

test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(3);
  await context.log.keepUntilSigned();
});
test.after.each(({ log }) => log.close());

test('agrees with heads of the old key, once one of the new key covers them', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned({ keys: [...KEYS, NEW] });
  await log.fill(3);
  await log.keepUntilSigned({ keys: [NEW] });
  const found = await log.verify({ verifiersOf: verifiersOf([NEW]) });
  assert.equal([found.agrees, found.difference, found.wrong_heads.found], [true, null, 0]);
  assert.ok(found.unverified_heads > 0 && found.verified_heads > 0);
  assert.is(found.unverified_heads + found.verified_heads, found.heads);
});

test('is kept on by the new key alone, once both have signed a head, and not before', async ({ log }) => {
  await log.fill(3);
  try {
    await log.keepUntilSigned({ keys: [NEW] });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).name, 'LogAlteredError');
  }
  await log.keepUntilSigned({ keys: [...KEYS, NEW] });
  await log.fill(3);
  await log.keepUntilSigned({ keys: [NEW] });
});

test('does not agree where no head is signed by a known key, nor one behind the last that is', async ({ log }) => {
  const none = await log.verify({ verifiersOf: verifiersOf([NEW]) });
  assert.is(none.agrees, false);
  assert.is(none.verified_heads, 0);
  assert.match(none.wrong_heads.first[0]?.why ?? '', /^no known key has signed it/);
  await log.fill(3);
  await log.keepUntilSigned({ keys: [...KEYS, NEW] });
  await log.fill(3);
  await log.keepUntilSigned();
  const behind = await log.verify({ verifiersOf: verifiersOf([NEW]) });
  assert.equal([behind.agrees, behind.difference, behind.wrong_heads.found > 0], [false, null, true]);
  assert.is(firstFault(behind)?.what, 'unknown signer', 'no head was altered: its key is not given');
});

test('is found altered by a head of the new key, with one of the old key before it', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned({ keys: [...KEYS, NEW] });
  await log.tamper((database) =>
    database.prepare(`UPDATE events SET data = replace(data, 'bean-soho', 'bean-bath') WHERE position = 1`).run(),
  );
  const found = await log.verify({ verifiersOf: verifiersOf([NEW]) });
  assert.equal([found.agrees, found.difference?.change, found.difference?.number], [false, 'altered', 1]);
});

test('may be repaired and rebuilt from once a head of the new key covers the others, not before', async ({ log }) => {
  const refused = async (): Promise<string> => {
    try {
      await refuseAlteredLog({ stored: log.events, folder: log.folder, keys: [NEW] });
      return '';
    } catch (error) {
      if (error instanceof AlteredLogRefusedError) return error.message;
      throw error;
    }
  };
  assert.match(await refused(), /^the log can't be held against what was signed: .*: SEAL_KEY lacks the key/);
  await log.fill(3);
  await log.keepUntilSigned({ keys: [...KEYS, NEW] });
  assert.is(await refused(), '');
});

test('may not be repaired nor rebuilt from where the published head was altered, and says why', async ({ log }) => {
  writeFileSync(join(log.folder.path, 'checkpoint'), 'altered');
  try {
    await refuseAlteredLog({ stored: log.events, folder: log.folder, keys: KEYS });
    assert.unreachable();
  } catch (error) {
    assert.instance(error, AlteredLogRefusedError);
    assert.match((error as Error).message, /the head that was published last is not a signed head/);
  }
});

test('finds an invalid signature of a known key, also where a later head covers it', async ({ log }) => {
  const note = (await log.folder.head()) ?? '';
  await log.fill(3);
  await log.keepUntilSigned();
  const forged = note.replace(/\n\d+\n/, '\n1\n');
  const { agrees, wrong_heads } = await log.verify({ kept: [{ from: 'my safe', note: forged }] });
  assert.equal([agrees, wrong_heads.found], [false, 1]);
  assert.match(wrong_heads.first[0]?.why ?? '', /is not valid for this text/);
});

test.run();
