import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Makes new, linked or renamed names survive a power cut: a folder is written separately from its files.
 * @throws the file system's errors
 */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
