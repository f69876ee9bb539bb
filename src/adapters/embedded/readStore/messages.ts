/** Messages between the store's threads, all plain data. */
import type { Checkpoint, Scalar } from '../../../ports/readStore.js';
import type { NumberedRequest } from '../writerClient.js';
import type { Layout } from './layout.js';

export interface EncodedDocuments {
  readonly layout: Layout;
  /**
   * Values of id, position, body (JSON) and the layout's columns, one document after another. One flat array crosses
   * threads fastest.
   */
  readonly rows: readonly Scalar[];
}

/** After a failed part later parts are not written: a checkpoint must not precede its documents. */
interface WritePart {
  readonly kind: 'write';
  readonly call: number;
  /** Only the last part is answered. */
  readonly last: boolean;
  readonly documents: readonly EncodedDocuments[];
  /** Checkpoints of documents in this part and in earlier ones. */
  readonly checkpoints: readonly Checkpoint[];
}

export type RecordRequest =
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly value: string;
      readonly expected: number | undefined;
      readonly expiresAt: number | undefined;
    }
  | { readonly kind: 'delete'; readonly key: string; readonly expected: number | undefined };

export interface EncodedCorrection {
  readonly id: string;
  readonly expected: string | undefined;
  /** One document's values as in `EncodedDocuments`; `undefined` deletes the document. */
  readonly row: readonly Scalar[] | undefined;
}

export type WriterRequest =
  | WritePart
  | RecordRequest
  | { readonly kind: 'ensure'; readonly layout: Layout; readonly deferIndexes: boolean }
  | { readonly kind: 'drop'; readonly layout: Layout }
  | { readonly kind: 'correct'; readonly layout: Layout; readonly corrections: readonly EncodedCorrection[] }
  | {
      readonly kind: 'activate';
      readonly name: string;
      readonly version: number;
      readonly expected: number | undefined;
    }
  | { readonly kind: 'deactivate'; readonly name: string; readonly version: number }
  | { readonly kind: 'bind'; readonly logId: string }
  | { readonly kind: 'scrub'; readonly owner: string }
  | { readonly kind: 'wipe' }
  /** Empties the WAL between transactions. Answered with whether the WAL is empty. */
  | { readonly kind: 'empty WAL' };

export type Numbered = NumberedRequest<WriterRequest>;
/** A request that is carried out within a transaction. */
export type NumberedChange = NumberedRequest<Exclude<WriterRequest, { kind: 'empty WAL' }>>;
export type { Answer } from '../writerClient.js';

export type LookupQuestion = readonly { readonly table: string; readonly ids: readonly string[] }[];

/**
 * Position and body (JSON) of each document, `undefined` twice for a missing one. `undefined` alone: the read failed.
 */
export type LookupAnswer = readonly (string | undefined)[] | undefined;
