import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { byteSearch } from '../../../src/lib/files/byteSearch.js';
import { type FileMatch, searchFiles } from '../../../src/lib/files/searchFiles.js';

const test = suite('search of files');

const MEBIBYTE = 1 << 20;
let dir = '';

test.before.each(() => {
  dir = mkdtempSync(join(tmpdir(), 'search-files-'));
});
test.after.each(() => rmSync(dir, { recursive: true, force: true }));

async function searched(
  path: string,
  values: readonly string[],
): Promise<{ found: FileMatch[]; files: number; bytes: number }> {
  const found: FileMatch[] = [];
  const all = await searchFiles(
    path,
    byteSearch(values.map((value) => [value])),
    async (match) => void found.push(match),
    new AbortController().signal,
  );
  return { found, ...all };
}

test('finds a text across the pieces in which a file is read, once for each file', async () => {
  const text = 'a text to be found';
  for (const at of [0, MEBIBYTE - 9, MEBIBYTE - 1, MEBIBYTE, 2 * MEBIBYTE - 4, 3 * MEBIBYTE - text.length]) {
    const bytes = Buffer.alloc(3 * MEBIBYTE, 'x');
    bytes.write(text, at);
    const file = join(dir, `at-${at}`);
    writeFileSync(file, bytes);
    assert.equal(await searched(file, [text, 'another']), {
      found: [{ text: 0, file, at }],
      files: 1,
      bytes: 3 * MEBIBYTE,
    });
  }
  assert.is((await searched(dir, [text])).found.length, 6);
});

test('looks into all folders, and follows no link', async () => {
  mkdirSync(join(dir, 'a', 'b'), { recursive: true });
  for (const file of ['x', 'a/y', 'a/b/z', 'a/b/none'])
    writeFileSync(join(dir, file), file.endsWith('y') ? 'secret' : '');
  symlinkSync(dir, join(dir, 'a', 'again'));
  const { found, files } = await searched(dir, ['secret']);
  assert.equal(found, [{ text: 0, file: join(dir, 'a', 'y'), at: 0 }]);
  assert.is(files, 4);
});

test('refuses a path that is not there, and ends when it is interrupted', async () => {
  const search = byteSearch([['abc']]);
  const none = async (): Promise<void> => undefined;
  const failed = async (path: string, signal: AbortSignal): Promise<string> =>
    searchFiles(path, search, none, signal).then(
      () => 'done',
      (error: NodeJS.ErrnoException) => error.code?.toString() ?? '',
    );
  assert.is(await failed(join(dir, 'none'), new AbortController().signal), 'ENOENT');
  assert.not.equal(await failed(dir, AbortSignal.abort()), 'done');
});

test.run();
