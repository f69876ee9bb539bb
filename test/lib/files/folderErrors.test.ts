import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError } from '../../../src/lib/engineError.js';
import { exhausted, linkFile } from '../../../src/lib/files/folderErrors.js';
import { runs } from '../../support/service/mainProcess.js';
import { NO_MOUNT, smallDisk } from '../../support/faults/smallDisk.js';
import { testWhere } from '../../support/assertions/testWhere.js';

const test = suite('why nothing can be made in a folder');
const probe = smallDisk(1, 4);
probe?.remove();

testWhere(
  test,
  probe !== undefined,
  NO_MOUNT,
  'names a lack of inodes as the cause, in every step of the start, despite free space',
  async () => {
    // The disk's own folder is one of them: after so many more files nothing can be made.
    for (let free = 0; free <= 17; free++) {
      const { dir, remove } = smallDisk(8, 1 + free)!;
      try {
        const { code, errors } = await runs({ PORT: '0', DATA_DIR: join(dir, 'data') });
        assert.is(code, 1, `${free} free`);
        assert.match(
          errors,
          /no inodes are free on the file system of .* \(df -i shows it\): remove files there that nobody needs/,
          `${free} free: ${errors}`,
        );
        assert.not.match(errors, /this user|    at /, `${free} free`);
      } finally {
        remove();
      }
    }
  },
);

test('finds no fault in a folder with room, nor in one that is not there yet', () => {
  for (const folder of [tmpdir(), join(tmpdir(), 'not', 'there')]) assert.is(exhausted(folder), undefined);
});

test("names a file system without hard links, and leaves a taken name to the system's error", () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-links-'));
  try {
    const [from, to] = [join(dir, 'from'), join(dir, 'to')];
    writeFileSync(from, 'x');
    for (const code of ['EPERM', 'ENOTSUP', 'EMLINK']) {
      const refuse = (): never => {
        throw Object.assign(new Error(`${code}: link`), { code });
      };
      assert.throws(
        () => linkFile(from, to, refuse),
        (error: Error) =>
          error instanceof EngineError &&
          error.message.startsWith(`DATA_DIR: the file system of ${dir} makes no hard link (${code})`),
      );
    }
    linkFile(from, to);
    assert.is(readFileSync(to, 'utf8'), 'x');
    assert.throws(() => linkFile(from, to), /EEXIST/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test.run();
