import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { progressFile } from '../../../src/cli/audit/verify.js';

const test = suite('file of gift audit verify --progress');

test('names the file that it can not write', () => {
  const dir = mkdtempSync(join(tmpdir(), 'progress-file-'));
  try {
    const path = join(dir, 'nowhere', 'progress');
    assert.throws(
      () => progressFile(path, 'a log', []).save({} as never, '2026-05-04T09:30:00.000Z'),
      (error: Error) =>
        error.name === 'CommandFailure' &&
        error.message === `--progress ${path} can't be written (ENOENT): name another file`,
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test.run();
