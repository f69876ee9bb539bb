/** Describes how a log differs from what was signed, once the whole log was read. */
import { rootOfTiles } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';
import type { HeadChecks } from './headChecks.js';
import type { Differing } from './tileComparison.js';
import type { EventLocation, FirstDifference } from './verification.js';

/**
 * Whether tiles that differ from the log are what was signed. They count as such also where no head covers the
 * difference.
 */
export async function tilesAreRight(
  folder: Pick<TileFolder, 'read'>,
  { number }: Differing,
  heads: HeadChecks,
): Promise<boolean> {
  if (number <= heads.agreed) return false;
  const wrong = heads.firstWrong;
  return (
    wrong === undefined ||
    wrong.size < number ||
    (await rootOfTiles(folder.read, wrong.size))?.equals(wrong.root) === true
  );
}

/**
 * Difference of a log whose start of the tree is missing or unreadable. A log without heads has no such start to have
 * lost.
 * @param start the event that started the tree, where it exists: it is unreadable
 */
export function withoutStart(
  { heads, largest }: HeadChecks,
  last: EventLocation | null,
  start: EventLocation | undefined,
): FirstDifference | null {
  const events = last?.number ?? 0;
  if (start !== undefined) {
    const { number } = start;
    return { change: 'altered', count: 1, number, event: start, before: null, signed: number <= largest };
  }
  if (heads === 0) return null;
  if (largest > events) return cutOff(largest, last);
  return { change: 'start missing', count: 1, number: 0, event: null, before: null, signed: true };
}

export function firstDifference(
  differing: Differing | undefined,
  heads: HeadChecks,
  last: EventLocation | null,
): FirstDifference | null {
  const { firstWrong: wrong, agreed, largest } = heads;
  const events = last?.number ?? 0;
  if (differing !== undefined && (wrong === undefined || differing.number <= wrong.size)) {
    const { change, count } = differing;
    const missing = change === 'cut off' ? Math.max(count, largest - events) : count;
    return { ...differing, count: missing, signed: differing.number <= largest };
  }
  if (wrong === undefined) return null;
  if (wrong.size > events) return cutOff(largest, last);
  return { change: 'unknown', count: wrong.size - agreed, number: agreed + 1, event: null, before: null, signed: true };
}

/** @param largest the size of the largest head @param last the last event that is left */
function cutOff(largest: number, last: EventLocation | null): FirstDifference {
  const events = last?.number ?? 0;
  return { change: 'cut off', count: largest - events, number: events + 1, event: null, before: last, signed: true };
}
