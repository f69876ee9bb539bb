/**
 * Progress of an interrupted verification that has found nothing wrong so far. How far it may be trusted:
 * docs/evidence.md#an-interrupted-verification
 */
import type { EventStore } from '../../../ports/eventStore.js';
import { HASH_BYTES } from '../format/parsing.js';
import type { TreeBuilder, TreeEdge } from '../format/tiles.js';
import { type HeadsSoFar, identityOf } from './headChecks.js';
import type { HeadToCheck } from '../heads/headsToCheck.js';
import type { PlacedEvent } from './verification.js';

/** Progress of a verification, which can be written as JSON. */
export interface VerifyProgress {
  readonly size: number;
  readonly last: PlacedEvent;
  /** The tree's right edge; hashes in base64. */
  readonly tiles: readonly { readonly level: number; readonly index: number; readonly hashes: string }[];
  readonly heads: HeadsSoFar;
}

export interface KeptProgress {
  readonly kept: VerifyProgress | undefined;
  /** Time when it was stored, ISO 8601. */
  readonly at: string | undefined;
  save(progress: VerifyProgress): void;
  /** Called where the stored progress can't be continued, and the whole log is read again. */
  unusable(why: string): void;
}

export function progressOf(tree: TreeBuilder, last: PlacedEvent, heads: HeadsSoFar): VerifyProgress {
  const { stream, revision, type, id, at, position } = last;
  return {
    size: tree.size,
    last: { stream, revision, type, id, at, position },
    tiles: tree.partialTiles().map(({ tile: { level, index }, hashes }) => ({
      level,
      index,
      hashes: hashes.toString('base64'),
    })),
    heads,
  };
}

export function edgeOf({ size, tiles }: VerifyProgress): TreeEdge {
  return {
    size,
    tiles: tiles.map(({ level, index, hashes }) => {
      const bytes = Buffer.from(hashes, 'base64');
      return { tile: { level, index, width: bytes.length / HASH_BYTES }, hashes: bytes };
    }),
  };
}

/** Reason why stored progress can't be continued; `undefined` where it can. @throws UnavailableError */
export async function whyUnusable(
  { size, last, heads }: VerifyProgress,
  stored: Pick<EventStore, 'read'>,
  outside: readonly HeadToCheck[],
): Promise<string | undefined> {
  const [event] = await stored.read(last.stream, { from: last.revision, limit: 1 });
  if (event?.id !== last.id || event.position !== last.position)
    return `the last event that was read, at position ${last.position}, is not there any more`;
  const unjudged = outside.find((head) => head.size <= size && !heads.outside.includes(identityOf(head)));
  return unjudged === undefined ? undefined : `${unjudged.from}, of ${unjudged.size} events, was not there then`;
}
