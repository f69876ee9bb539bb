import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { storedText, textOf } from '../../../src/lib/files/storedText.js';
import { replaceFile } from '../../../src/lib/files/replaceFile.js';

const test = suite<{ dir: string; file: string }>('kept texts');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'kept-text-'));
  context.file = join(context.dir, 'text');
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

test('are made once, and left as they are', ({ dir, file }) => {
  assert.is(textOf(file), undefined);
  assert.is(
    storedText(file, () => 'first'),
    'first',
  );
  assert.is(
    storedText(file, () => assert.unreachable() as never),
    'first',
  );
  assert.is(readFileSync(file, 'utf8'), 'first\n');
  assert.is(statSync(file).mode & 0o777, 0o600);
  assert.equal(readdirSync(dir), ['text']);
});

test('are those of the first of two that make them at once', ({ dir, file }) => {
  const text = storedText(file, () => {
    storedText(file, () => 'first');
    return 'second';
  });
  assert.is(text, 'first');
  assert.equal(readdirSync(dir), ['text']);
});

test('can’t be made where there is no folder', ({ dir }) => {
  assert.throws(() => storedText(join(dir, 'none', 'text'), () => 'x'), /ENOENT/);
});

test('are replaced whole, also over what a killed process left', ({ dir, file }) => {
  writeFileSync(`${file}.part`, 'a draft that was cut');
  for (const text of ['first\n', 'second, which is longer\n', '3\n']) {
    replaceFile(file, text);
    assert.is(readFileSync(file, 'utf8'), text);
    assert.is(statSync(file).mode & 0o777, 0o600);
  }
  assert.equal(readdirSync(dir), ['text']);
  assert.throws(() => replaceFile(join(dir, 'none', 'text'), 'x'), /ENOENT/);
});

test.run();
