import type { Position } from '../../ports/eventStore.js';

/**
 * The share of the log before a position, 0 to 1; `undefined`: unknown. Positions of every engine are decimal numbers
 * that grow evenly enough for this estimate, and for nothing else.
 */
export function shareOf(position: Position | undefined, end: Position | undefined): number | undefined {
  if (end === undefined) return 1;
  if (position === undefined) return 0;
  const share = Number(position) / Number(end);
  return Number.isFinite(share) ? Math.min(1, share) : undefined;
}
