/**
 * The Merkle tree over the log (docs/evidence.md): how its leaves are made, and its signed heads. No decision depends
 * on them.
 */
import type { DomainEvent } from './decider.js';

/** Stream of the one `TreeStarted`. A copied log retains that event, and so its leaves. */
export const TREE_STREAM = 'log-tree';

/** Stream of one log's signed heads. A copied log also retains those of the log from which it was copied. */
export const treeHeadStream = (logId: string): string => `treeHeads-${logId}`;

/**
 * How all leaves of the log are made (docs/evidence.md#salted-hashes). `apart`: names of the fields that a proof may
 * keep. Secret: `salt_key`, 32 random bytes in base64; without it, hidden fields can't be guessed.
 */
export type TreeStarted = DomainEvent<'TreeStarted', { readonly salt_key: string; readonly apart: readonly string[] }>;

/** The last signed head of the log that another one was copied, or restored, from. */
export interface ContinuedHead {
  readonly log_id: string;
  readonly size: number;
  /** Root hash of the tree, in base64. */
  readonly root: string;
  /** The signed head, signed by a key of that log. */
  readonly note: string;
}

/**
 * `note`: the signed head (C2SP calls it a checkpoint). `position`: position of the head's last event in the log that
 * signed it. `continues`: present in the first head of a log that has heads of another log.
 */
export type TreeHeadSigned = DomainEvent<
  'TreeHeadSigned',
  { readonly note: string; readonly position: string; readonly continues?: ContinuedHead }
>;

export type TreeEvent = TreeStarted | TreeHeadSigned;

/**
 * Events of the tree itself. A tree that grew only by these needs no other head, since an idle log would grow for ever.
 */
export const TREE_TYPES: ReadonlySet<string> = new Set<TreeEvent['type']>(['TreeHeadSigned', 'TreeStarted']);
