/** How far along the log a position is. */
import type { Position } from '../../ports/eventStore.js';

/**
 * How much of the log lies up to a position, 0 to 1. Positions of every engine are decimal numbers that grow evenly
 * enough to show how far one is; nothing else may depend on that. `undefined` where they are none.
 */
export function shareOf(position: Position | undefined, end: Position | undefined): number | undefined {
  if (end === undefined) return 1;
  if (position === undefined) return 0;
  const share = Number(position) / Number(end);
  return Number.isFinite(share) ? Math.min(1, share) : undefined;
}
