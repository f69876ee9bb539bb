/** Messages between the thread that has opened the store and its threads for writes and look-ups, all plain data. */
import type { Checkpoint, Scalar } from '../../../ports/readStore.js';
import type { ThreadFault } from '../sqlite.js';
import type { Layout } from './layout.js';

export interface EncodedBatch {
  readonly layout: Layout;
  /**
   * One document after another: id, position, body (JSON), then the layout's columns. One flat array crosses threads
   * fastest.
   */
  readonly rows: readonly Scalar[];
  readonly checkpoint?: Checkpoint;
}

/**
 * A part of one `write`. After a failed part later ones are not written: a checkpoint must not get ahead of its
 * documents.
 */
export interface WritePart {
  readonly kind: 'write';
  readonly call: number;
  /** Only the last part is answered. */
  readonly last: boolean;
  readonly batches: readonly EncodedBatch[];
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
  /** As in `EncodedBatch`; `undefined`: the document is deleted. */
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
  | { readonly kind: 'bind'; readonly logId: string };

/** A request and its number in the answer; 0: no answer is wanted. */
export interface Numbered {
  readonly id: number;
  readonly request: WriterRequest;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: ThreadFault;
}

export type LookupQuestion = readonly { readonly table: string; readonly ids: readonly string[] }[];

/**
 * Position and body (JSON) of one document after another, `undefined` twice where there is none. `undefined` alone: the
 * thread could not read.
 */
export type LookupAnswer = readonly (string | undefined)[] | undefined;
