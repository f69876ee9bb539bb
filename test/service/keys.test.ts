import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { findHashKey, loadKeys } from '../../src/service/keys.js';
import { fillDisk, NO_MOUNT, smallDisk } from '../support/faults/smallDisk.js';
import { testWhere } from '../support/assertions/testWhere.js';

const test = suite<{ dir: string }>('keys');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-keys-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

test('makes keys once, for their owner only, and keeps them', ({ dir }) => {
  const dataDir = join(dir, 'new');
  const made = loadKeys({ dataDir });
  assert.deepEqual(loadKeys({ dataDir }), made);
  assert.ok(Buffer.byteLength(made.tokenKeys[0] ?? '') >= 32 && made.hashKey.length >= 32);
  assert.notEqual(made.tokenKeys[0], made.hashKey.toString());
  assert.deepEqual(readdirSync(dataDir).sort(), ['hash.key', 'master.key', 'seal.key', 'token.key']);
  for (const name of readdirSync(dataDir)) assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600);
});

test('uses keys that are set, and makes none', ({ dir }) => {
  assert.deepEqual(
    loadKeys({ dataDir: dir, tokenKeys: ['a', 'b'], hashKey: 'c', masterKeys: ['d', 'e'], sealKeys: ['f'] }),
    {
      tokenKeys: ['a', 'b'],
      hashKey: Buffer.from('c'),
      masterKeys: ['d', 'e'],
      sealKeys: ['f'],
    },
  );
  assert.deepEqual(readdirSync(dir), []);
});

test('refuses a key cut short, and leaves it as it is', ({ dir }) => {
  writeFileSync(join(dir, 'token.key'), 'short');
  assert.throws(() => loadKeys({ dataDir: dir }), /token\.key is not a whole key: put back/);
  assert.equal(readFileSync(join(dir, 'token.key'), 'utf8'), 'short');
});

test('refuses a file that is no key at all, and leaves it as it is', ({ dir }) => {
  const foreign = Buffer.from('\u0001\u00ff a picture, not a key '.repeat(10));
  writeFileSync(join(dir, 'hash.key'), foreign);
  assert.throws(
    () => loadKeys({ dataDir: dir }),
    /^EngineError: DATA_DIR: .*hash\.key is not a whole key: put back .*; it was left as it is$/,
  );
  assert.throws(() => findHashKey({ dataDir: dir }), /hash\.key is not a whole key/);
  assert.deepEqual(readFileSync(join(dir, 'hash.key')), foreign);
});

const disk = smallDisk(1);
testWhere(test, disk !== undefined, NO_MOUNT, 'a full disk leaves no half of a key, and no draft of one', () => {
  const { dir, remove } = disk!;
  try {
    fillDisk(join(dir, 'filler'));
    assert.throws(
      () => loadKeys({ dataDir: dir }),
      ({ message, cause }: Error) =>
        /token\.key can't be made \(ENOSPC\): no room is left/.test(message) &&
        (cause as NodeJS.ErrnoException).code === 'ENOSPC',
    );
    assert.deepEqual(readdirSync(dir), ['filler']);
  } finally {
    remove();
  }
});

test('says what to change when the folder can’t be used', ({ dir }) => {
  writeFileSync(join(dir, 'file'), '');
  for (const dataDir of [join(dir, 'file'), join(dir, 'file', 'below')]) {
    assert.throws(
      () => loadKeys({ dataDir }),
      (error: Error) =>
        error.message.startsWith(
          `DATA_DIR: ${dataDir} is not a folder that can be used: a file stands there; name another one`,
        ),
    );
  }
});

test.run();
