import type { TreeHead } from '../format/merkleTree.js';
import { ToldError } from '../../../runtime/supervision/followers.js';

/** The log does not match a signed head: an event was altered, removed, inserted, exchanged or cut off. */
export class LogAlteredError extends ToldError {
  override readonly name = 'LogAlteredError';
  /** @param found the fault as a message for the public, or the signed head that the log does not match */
  constructor(found: string | Pick<TreeHead, 'size'>, options?: ErrorOptions) {
    const words =
      typeof found === 'string'
        ? found
        : `the log's first ${found.size} events are not those of the head that was signed over them`;
    super(`${words}: nothing more is signed; gift audit verify names the first that differs`, words, options);
  }
}
