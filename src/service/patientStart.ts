/**
 * A start that meets engines that are not there yet, or slow, as after a machine has restarted: it waits for them,
 * within bounds, and says for what.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { NoAnswerError } from '../lib/engineError.js';
import { diskRemedy } from './diskRemedy.js';
import { UnavailableError } from '../ports/unavailable.js';

/** How long it waits between two attempts, in ms: each of these leaves a line in the log. */
const BETWEEN_MS = 2_000;

/** How long is waited, and between two attempts, in ms. */
export interface Patience {
  readonly waitMs: number;
  readonly betweenMs?: number;
}

/**
 * Starts again and again while a server does not answer, or not in time, until `waitMs` have passed.
 * @param start releases what it opened where it fails
 * @throws what the last attempt failed with; at once, what waiting does not change: refused credentials, a damaged
 * file, a full disk
 */
export async function startPatiently<T>(
  start: () => Promise<T>,
  logger: Logger,
  { waitMs, betweenMs = BETWEEN_MS }: Patience,
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

/** Whether another attempt may go better. */
function maySettle(error: unknown): error is Error {
  return error instanceof NoAnswerError || (error instanceof UnavailableError && diskRemedy(error) === undefined);
}
