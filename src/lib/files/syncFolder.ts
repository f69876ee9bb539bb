import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Makes the names in a folder survive a power cut, such as that of a file that was just made, linked or renamed: a
 * folder is written separately from its files. @throws the file system's errors
 */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
