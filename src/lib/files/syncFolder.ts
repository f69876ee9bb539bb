import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Makes new names survive a power cut: a folder is written separately from its files. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
