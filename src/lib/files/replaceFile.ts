import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { keepOwner } from './keepOwner.js';
import { syncFolder } from './syncFolder.js';

/** The name under which a file is written before it gets its own. A process that was killed may leave such a draft. */
export const draftOf = (file: string): string => `${file}.part`;

/**
 * Gives the file another text (mode 0600): a reader, also after a power cut, finds the former text or this one whole.
 * It is durable once this has returned. One process writes at a time.
 * @throws the file system's errors; then the file has either text
 */
export function replaceFile(file: string, text: string): void {
  const draft = draftOf(file);
  // A killed process may have left a draft, of any mode.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    try {
      keepOwner(draft);
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(file));
}
