/** A small file system of its own, in memory, for tests of a disk that fills up. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why there is none, for tests that need one. */
export const NO_MOUNT = 'no file system can be mounted here';

/**
 * Makes a disk of so many MB, and for so many files where said; `undefined` where this user may not. It may still be in
 * use when it is removed: it goes when it no longer is.
 */
export function smallDisk(megabytes: number, files?: number): { readonly dir: string; remove(): void } | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'gift-disk-'));
  const mounted =
    spawnSync('mount', [
      '-t',
      'tmpfs',
      '-o',
      `size=${megabytes}m${files === undefined ? '' : `,nr_inodes=${files}`}`,
      'tmpfs',
      dir,
    ]).status === 0;
  if (!mounted) {
    rmSync(dir, { recursive: true });
    return undefined;
  }
  return {
    dir,
    remove() {
      execFileSync('umount', ['--lazy', dir]);
      rmSync(dir, { recursive: true });
    },
  };
}

/** Takes all the room there is on its disk. */
export function fillDisk(file: string): void {
  const fd = openSync(file, 'w');
  try {
    for (;;) writeSync(fd, Buffer.alloc(4_096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(fd);
  }
}
