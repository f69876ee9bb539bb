/** A piece of parked work, looked at again while a retry of it is in progress. */
import type { ParkedWithEvents } from '../../src/ops/parked/parkedView.js';
import { Failed, get } from './call.js';
import { type Loaded, pauseSince, useLoaded } from './loaded.js';

/** @param id of the piece, or of what it belongs to. The value is `null` where nothing of it was ever parked. */
export function useParkedPiece(id: string): Loaded<ParkedWithEvents | null> {
  return useLoaded(
    async (signal) => {
      try {
        return (await get<{ readonly data: ParkedWithEvents }>(`ops/parked/${encodeURIComponent(id)}`, { signal }))
          .data;
      } catch (error) {
        if (error instanceof Failed && error.status === 404) return null;
        throw error;
      }
    },
    [id],
    { everyMs: (piece) => (isInProgress(piece) ? pauseSince(piece.changed_at) : undefined) },
  );
}

/** Whether it was handed back, and its outcome is not known yet. */
export const isInProgress = (piece: ParkedWithEvents | null | undefined): piece is ParkedWithEvents =>
  piece?.state === 'retried' && !piece.settled;
