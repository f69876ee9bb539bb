/** Messages to the thread that writes the key store, all plain data. One flat array crosses threads fastest. */
import type { NumberedRequest } from '../writerClient.js';

export type KeyRequest =
  /** Id, lookup and secret of one row after another. Answered with those that stood in place of a given row. */
  | { readonly kind: 'add'; readonly rows: readonly string[] }
  /** Id and secret of one row after another. */
  | { readonly kind: 'rewrap'; readonly rows: readonly string[] }
  | { readonly kind: 'remove'; readonly ids: readonly string[] };

export type NumberedKeyRequest = NumberedRequest<KeyRequest>;
