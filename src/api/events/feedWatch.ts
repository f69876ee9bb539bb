/** Long polls of the event feed: one look at its progress serves all that wait in this process. */
import { pause } from '../../lib/async/pause.js';
import type { Position } from '../../ports/eventStore.js';

const LOOK_MS = 50;
/** Above this number a request is answered at once, as if nothing had come: each holds a connection. */
const MAX_WAITING = 1_000;

export interface FeedWatch {
  /**
   * Waits until the feed has gone beyond `position`, by an event of any caller; at most `ms`, and not once the caller
   * has left or the process stops.
   * @returns whether it has
   * @throws UnavailableError
   */
  beyond(position: Position | undefined, ms: number, left: AbortSignal): Promise<boolean>;
}

export function feedWatch(folded: () => Promise<Position | undefined>, stopping: AbortSignal): FeedWatch {
  let waiting = 0;
  let looking: Promise<Position | undefined> | undefined;

  function look(): Promise<Position | undefined> {
    looking ??= pause(LOOK_MS, stopping)
      .then(folded)
      .finally(() => {
        looking = undefined;
      });
    return looking;
  }

  return {
    async beyond(position, ms, left) {
      if (waiting >= MAX_WAITING) return false;
      const over = new AbortController();
      const ends = AbortSignal.any([left, stopping, over.signal]);
      const ended = pause(ms, ends).then(() => over.abort());
      waiting += 1;
      try {
        while (!ends.aborted) {
          const now = await Promise.race([look(), ended]);
          if (now !== undefined && now > (position ?? '')) return true;
        }
        return false;
      } finally {
        waiting -= 1;
        over.abort();
      }
    },
  };
}
