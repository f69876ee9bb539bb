/** Names on disk: what a folder holds is written by itself, later than what its files hold. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Sees to it that the names in a folder survive a power cut: that of a file that was made, linked or renamed a moment
 * ago above all. @throws the file system's errors
 */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
