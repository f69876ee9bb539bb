import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { NoAnswerError } from '../lib/engineError.js';
import { diskRemedy } from './diskRemedy.js';
import { UnavailableError } from '../ports/unavailable.js';

/** Milliseconds between two attempts, each of which leaves a line in the log. */
const BETWEEN_MS = 2_000;

export interface RetryPolicy {
  readonly waitMs: number;
  readonly betweenMs?: number;
}

/**
 * Tries again while a server does not answer, for up to `waitMs`.
 * @param start releases what it opened when it fails
 * @throws the last attempt's error; at once, errors that waiting does not change: refused credentials, a damaged file,
 * a full disk
 */
export async function startWithRetries<T>(
  start: () => Promise<T>,
  logger: Logger,
  { waitMs, betweenMs = BETWEEN_MS }: RetryPolicy,
): Promise<T> {
  const until = performance.now() + waitMs;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const left = until - performance.now();
      if (!maySettle(error) || left <= 0) throw error;
      logger.warn({ leftSeconds: Math.ceil(left / 1_000) }, `not started yet, trying again: ${error.message}`);
      await sleep(Math.min(betweenMs, left));
    }
  }
}

function maySettle(error: unknown): error is Error {
  return error instanceof NoAnswerError || (error instanceof UnavailableError && diskRemedy(error) === undefined);
}
