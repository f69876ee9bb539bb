/**
 * What the thread that has opened the store asks of the writer's thread and of the one that looks documents up, and how
 * they answer. Everything is plain data.
 */
import type { Checkpoint, Scalar } from '../../../ports/readStore.js';
import type { ThreadFault } from '../sqlite.js';
import type { Layout } from './layout.js';

/** A batch with its bodies as JSON. */
export interface PackedBatch {
  readonly layout: Layout;
  /**
   * One document after another: id, position, body, then the values of the layout's columns. One flat array crosses
   * threads fastest.
   */
  readonly rows: readonly Scalar[];
  readonly checkpoint?: Checkpoint;
}

/**
 * A part of one `write`. When a part fails, those after it are not written: a checkpoint must not get ahead of its
 * documents.
 */
export interface WritePart {
  readonly kind: 'write';
  /** The same in all parts of one `write`. */
  readonly call: number;
  /** Only the last part is answered. */
  readonly last: boolean;
  readonly batches: readonly PackedBatch[];
}

/** One change to a record. */
export type RecordRequest =
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly value: string;
      readonly expected: number | undefined;
      readonly expiresAt: number | undefined;
    }
  | { readonly kind: 'delete'; readonly key: string; readonly expected: number | undefined };

/** A document put right. */
export interface PackedCorrection {
  readonly id: string;
  readonly expected: string | undefined;
  /** Id, position, body, then the values of the layout's columns; `undefined`: nothing is to stand there. */
  readonly row: readonly Scalar[] | undefined;
}

/** What can be asked. */
export type WriterRequest =
  | WritePart
  | RecordRequest
  | { readonly kind: 'ensure'; readonly layout: Layout; readonly deferIndexes: boolean }
  | { readonly kind: 'drop'; readonly layout: Layout }
  | { readonly kind: 'correct'; readonly layout: Layout; readonly corrections: readonly PackedCorrection[] }
  | {
      readonly kind: 'activate';
      readonly name: string;
      readonly version: number;
      readonly expected: number | undefined;
    }
  | { readonly kind: 'deactivate'; readonly name: string; readonly version: number }
  | { readonly kind: 'bind'; readonly logId: string };

/** A request and the number under which it is answered; 0: no answer is wanted. */
export interface Numbered {
  readonly id: number;
  readonly request: WriterRequest;
}

/** A message to the writer's thread. After `close` nothing more is sent; it finishes what was asked and ends. */
export type ToWriter = readonly Numbered[] | 'close';

/** The answer to a request: its value, or why there is none. */
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: ThreadFault;
}

/** What the writer's thread says: `ready` once, then answers. */
export type FromWriter = 'ready' | readonly Answer[];

/** Ids to look up, of one table after another; after `close` the thread ends. */
export type ToLookupThread = readonly { readonly table: string; readonly ids: readonly string[] }[] | 'close';

/**
 * `ready` once, then an answer to each message: position and body (JSON) of one document after another, `undefined`
 * twice where there is none. `undefined` alone: it could not read.
 */
export type FromLookupThread = 'ready' | readonly (string | undefined)[] | undefined;
