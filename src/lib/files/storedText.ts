/** Files that hold one text, such as a key, which is created once and then retained. */
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { randomBytes } from '../world.js';
import { fullOr, linkFile } from './folderErrors.js';
import { keepOwner } from './keepOwner.js';
import { syncFolder } from './syncFolder.js';

/** A file's text, without space around it; `undefined`: the file does not exist. @throws the file system's errors */
export function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The file's text; a missing file is made (mode 0600) and durable before this returns. Processes that start together
 * get the same text.
 * @throws EngineError, the file system's errors
 */
export function storedText(file: string, make: () => string): string {
  const found = textOf(file);
  if (found !== undefined) return found;
  makeOnce(file, make());
  return textOf(file) ?? '';
}

/** The file gets its name when the text is complete and on disk. */
function makeOnce(file: string, text: string): void {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const descriptor = openDraft(draft, file);
  try {
    try {
      keepOwner(draft);
      writeSync(descriptor, `${text}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    linkFile(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fullOr(error, file);
  } finally {
    rmSync(draft);
  }
}

function openDraft(draft: string, file: string): number {
  try {
    return openSync(draft, 'wx', 0o600);
  } catch (error) {
    throw fullOr(error, file);
  }
}
