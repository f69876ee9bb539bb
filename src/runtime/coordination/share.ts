/** How far along the log a position is. */
import type { Position } from '../../ports/eventStore.js';

/**
 * The share of the log up to a position, 0 to 1; `undefined` where that can't be told. Positions of every engine are
 * decimal numbers that grow evenly enough for this; nothing else may depend on that.
 */
export function shareOf(position: Position | undefined, end: Position | undefined): number | undefined {
  if (end === undefined) return 1;
  if (position === undefined) return 0;
  const share = Number(position) / Number(end);
  return Number.isFinite(share) ? Math.min(1, share) : undefined;
}
