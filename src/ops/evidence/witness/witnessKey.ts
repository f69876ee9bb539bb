import { randomBytes } from 'node:crypto';
import { keptText, textOf } from '../../../lib/files/keptText.js';
import { COSIGNATURE_V1, formatSignerKey } from '../format/noteKeys.js';

/**
 * The witness' key from its file, secret; made where the file is missing.
 * @returns `undefined` where it is missing and no name was given
 * @throws MalformedEvidenceError for a name that no key may have; the file system's errors
 */
export function witnessKey(file: string, name: string | undefined): string | undefined {
  return name === undefined
    ? textOf(file)
    : keptText(file, () => formatSignerKey(name, COSIGNATURE_V1, randomBytes(32)));
}
