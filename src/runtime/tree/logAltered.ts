import type { TreeHead } from '../evidence/merkleTree.js';
import { ToldError } from '../supervision/followers.js';

/** The log is not the one that a signed head is of: an event of it was altered, removed, inserted, exchanged or cut off. */
export class LogAlteredError extends ToldError {
  override readonly name = 'LogAlteredError';
  /** @param found in words for anybody, or the size of the head that the log is not of */
  constructor(found: string | Pick<TreeHead, 'size'>, options?: ErrorOptions) {
    const words =
      typeof found === 'string'
        ? found
        : `the log's first ${found.size} events are not those of the head that was signed over them`;
    super(`${words}: nothing more is signed; gift audit verify names the first that differs`, words, options);
  }
}
