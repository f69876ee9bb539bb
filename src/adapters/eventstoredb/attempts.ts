/** Trying again what may be tried again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { AccessRefusedError, UnsafeServerError } from './failures.js';

/**
 * For how long tries may begin after the first, in ms. An election or a restart may fit in; longer where it isn't known
 * what became of an append: the server drops a repeat of one that is not replicated yet, without a word, and tells of
 * that only after 2 s.
 */
const RETRY_MS = { undone: 2_000, unknown: 5_000 };
/** Pauses between tries, in ms. */
const PAUSE = { first: 25, most: 500 };

/** What no further try within this time would change. */
const LASTING = [AccessRefusedError, LogSealedError, UnsafeServerError] as const;

/** Pauses that grow, each at random between half and all of its length, so that many do not come back at once. */
export function pauses({ first, most }: { first: number; most: number }): () => number {
  let next = first;
  return () => {
    const ms = next * (0.5 + Math.random() / 2);
    next = Math.min(most, next * 2);
    return ms;
  };
}

/**
 * Runs `attempt` until it succeeds, fails with something else than UnavailableError, or has failed for too long. An
 * outcome that one attempt left unknown stays so.
 * @param over True once nothing is to be tried any more.
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
        throw unknown === error.outcomeUnknown
          ? error
          : new UnavailableError(error.message, { outcomeUnknown: unknown, cause: error });
      }
      await sleep(ms);
    }
  }
}
