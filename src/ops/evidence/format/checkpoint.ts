/** The text of a checkpoint (c2sp.org/tlog-checkpoint): a log's origin, its number of leaves and their root. */
import { MalformedEvidenceError } from './errors.js';
import type { TreeHead } from './merkleTree.js';
import { fromDecimal, hashFromBase64 } from './strictText.js';

export interface Checkpoint extends TreeHead {
  /** Names the log for ever: `host/log/{log id}`. */
  readonly origin: string;
}

export interface ParsedCheckpoint extends Checkpoint {
  readonly root: Buffer;
  /** Extension lines after the root; checkpoints of this service have none. */
  readonly extensions: readonly string[];
}

/** The checkpoint's text with its last newline: the body of a note. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  const text = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
  parseCheckpoint(text);
  return text;
}

/** @throws MalformedEvidenceError also for a size over 2^53-1 */
export function parseCheckpoint(text: string): ParsedCheckpoint {
  const [origin, size, root, ...rest] = text.split('\n');
  const extensions = rest.slice(0, -1);
  if (origin === undefined || size === undefined || root === undefined || rest.at(-1) !== '')
    throw new MalformedEvidenceError('a checkpoint has at least three lines, and each ends with a newline');
  if (origin === '' || extensions.includes('')) throw new MalformedEvidenceError('a checkpoint has no empty lines');
  return {
    origin,
    size: fromDecimal(size, "a checkpoint's size"),
    root: hashFromBase64(root, "a checkpoint's root"),
    extensions,
  };
}
