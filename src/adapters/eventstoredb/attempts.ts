import { setTimeout as sleep } from 'node:timers/promises';
import { LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError, withUnknownOutcome } from '../../ports/unavailable.js';
import { AccessRefusedError, OtherLogError, UnsafeServerError } from './failures.js';

/**
 * Milliseconds after the first attempt in which others may start: covers an election or a restart. Longer after an
 * unknown outcome, since the server reports only after 2 s that it dropped a repeat of an append not replicated yet.
 */
const RETRY_MS = { undone: 2_000, unknown: 5_000 };
const PAUSE = { first: 25, most: 500 };

const LASTING = [AccessRefusedError, LogSealedError, OtherLogError, UnsafeServerError] as const;

/** Growing pauses in ms, each at random between half and all of its length, so that callers spread out. */
export function pauses({ first, most }: { first: number; most: number }): () => number {
  let next = first;
  return () => {
    const ms = next * (0.5 + Math.random() / 2);
    next = Math.min(most, next * 2);
    return ms;
  };
}

/**
 * Repeats an attempt while the engine is unavailable. An outcome that one attempt left unknown stays unknown.
 * @param over true once no further attempt may start
 */
export async function withRetries<T>(attempt: () => Promise<T>, over: () => boolean): Promise<T> {
  const since = performance.now();
  const pause = pauses(PAUSE);
  let unknown = false;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      unknown ||= error.outcomeUnknown;
      const ms = pause();
      if (
        LASTING.some((lasting) => error instanceof lasting) ||
        over() ||
        performance.now() + ms - since > (unknown ? RETRY_MS.unknown : RETRY_MS.undone)
      ) {
        throw unknown ? withUnknownOutcome(error) : error;
      }
      await sleep(ms);
    }
  }
}
