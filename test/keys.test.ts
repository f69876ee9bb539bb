import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { loadKeys } from '../src/keys.js';

const test = suite<{ dir: string }>('keys');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-keys-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

test('keys are made once, for their owner only, and kept', ({ dir }) => {
  const dataDir = join(dir, 'new');
  const made = loadKeys({ dataDir });
  assert.deepEqual(loadKeys({ dataDir }), made);
  assert.ok(Buffer.byteLength(made.tokenKeys[0] ?? '') >= 32 && made.hashKey.length >= 32);
  assert.notEqual(made.tokenKeys[0], made.hashKey.toString());
  assert.deepEqual(readdirSync(dataDir).sort(), ['hash.key', 'token.key']);
  for (const name of readdirSync(dataDir)) assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600);
});

test('keys that are set are used, and none is made', ({ dir }) => {
  assert.deepEqual(loadKeys({ dataDir: dir, tokenKeys: ['a', 'b'], hashKey: 'c' }), { tokenKeys: ['a', 'b'], hashKey: Buffer.from('c') });
  assert.deepEqual(readdirSync(dir), []);
});

test('a key cut short is refused, and left as it is', ({ dir }) => {
  writeFileSync(join(dir, 'token.key'), 'short');
  assert.throws(() => loadKeys({ dataDir: dir }), /token\.key is not a whole key: put back/);
  assert.equal(readFileSync(join(dir, 'token.key'), 'utf8'), 'short');
});

test('a folder that can’t be used is an error', ({ dir }) => {
  writeFileSync(join(dir, 'file'), '');
  assert.throws(() => loadKeys({ dataDir: join(dir, 'file') }));
});

test.run();
