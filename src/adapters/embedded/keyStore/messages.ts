/** Messages to the thread that writes the key store, all plain data. One flat array crosses threads fastest. */
import type { ErasureRow } from '../../../ports/keyStore.js';
import type { NumberedRequest } from '../writerClient.js';

/** A subject's row; `fenced` is 0 or 1. */
export type Row = readonly [id: string, lookup: string, secret: string, fenced: number];
export const ROW_FIELDS = 4;

export type KeyRequest =
  /** Id, lookup and secret of one row after another. Answered with an `Added`. */
  | { readonly kind: 'add'; readonly rows: readonly string[] }
  /** Id and secret of one row after another. */
  | { readonly kind: 'rewrap'; readonly rows: readonly string[] }
  | { readonly kind: 'fence'; readonly ids: readonly string[] }
  | { readonly kind: 'unfence'; readonly ids: readonly string[] }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
  | { readonly kind: 'putErasure'; readonly row: ErasureRow };

export interface Added {
  /** Fields of rows that were already stored under the lookup of a given row, one row after another. */
  readonly others: readonly Row[number][];
  /** Ids of given rows that were removed before: nothing was added. */
  readonly removed: readonly string[];
}

export type NumberedKeyRequest = NumberedRequest<KeyRequest>;
