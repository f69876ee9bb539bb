/** The file of `gift audit verify --progress`: how far an interrupted verification has come. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { rmSync } from 'node:fs';
import { textOf } from '../../lib/files/storedText.js';
import { replaceFile } from '../../lib/files/replaceFile.js';
import type { VerifyProgress } from '../../ops/evidence/index.js';
import { CommandFailure, usageFailure } from '../terminal.js';

const FORMAT = 'gift-verify-progress/v1';

interface ProgressFile {
  /** Time of the stored progress, ISO 8601; `undefined`: none is stored. */
  readonly at: string | undefined;
  readonly kept: VerifyProgress | undefined;
  /** Why the file's progress can't be used. */
  readonly unusable: string | undefined;
  /** @throws CommandFailure */
  save(progress: VerifyProgress, at: string): void;
  remove(): void;
}

/**
 * @param keys the keys that verify signatures: a progress can't be forged without the texts of SEAL_KEY, and a progress
 * of other keys is not continued. Without any key only damage is found
 * @throws CommandFailure where it is a file of another kind; the file system's errors
 */
export function progressFile(path: string, logId: string, keys: readonly string[]): ProgressFile {
  const mac = (body: string): Buffer =>
    createHmac('sha256', JSON.stringify([FORMAT, ...keys]))
      .update(`${logId}\n${body}`)
      .digest();
  const file = {
    save(progress: VerifyProgress, at: string) {
      const body = JSON.stringify({ at, progress });
      try {
        replaceFile(path, `${FORMAT}\n${logId}\n${mac(body).toString('base64')}\n${body}\n`);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        throw new CommandFailure(`--progress ${path} can't be written (${code ?? message}): name another file`);
      }
    },
    remove: () => rmSync(path, { force: true }),
  };
  const none = { at: undefined, kept: undefined, unusable: undefined, ...file };
  const text = textOf(path);
  if (text === undefined) return none;
  const [format, of = '', seal = '', body = ''] = text.split('\n');
  // A file of another kind is not overwritten.
  if (format !== FORMAT) throw usageFailure(`--progress ${path}: it is a file of another kind`);
  if (of !== logId) return { ...none, unusable: `it is of another log, ${of}` };
  const given = Buffer.from(seal, 'base64');
  const own = mac(body);
  if (given.length !== own.length || !timingSafeEqual(given, own))
    return { ...none, unusable: 'it was altered, or is of other keys' };
  const { at, progress } = JSON.parse(body) as { readonly at: string; readonly progress: VerifyProgress };
  return { at, kept: progress, unusable: undefined, ...file };
}
