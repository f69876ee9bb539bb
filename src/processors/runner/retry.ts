/** Which failures pass, and how long to wait before the next attempt. */
import { AUTHENTICATION_MS } from '../../domain/purchase.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../ports/bus.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { isFailure, RetryLaterError, type WorkerFailure } from '../../messages/workerFailure.js';

/** How patient the process managers are. All in milliseconds. */
export interface RetryPolicy {
  /**
   * The wait after the first failure; it doubles with each further one, up to `retryAtMostMs`, less up to half by
   * chance.
   */
  readonly retryMs: number;
  readonly retryAtMostMs: number;
  /** How long an answer on the bus is waited for. */
  readonly answerMs: number;
  /**
   * How long a charge may be asked for again under its key: providers forget keys after 24 h. Later it is only looked
   * up.
   */
  readonly askAgainMs: number;
  /** How long a buyer has to prove who they are. */
  readonly authenticationMs: number;
  /**
   * When it is first looked whether they have; then after three times as long, and so on. The provider tells sooner as
   * a rule.
   */
  readonly lookMs: number;
  /** What passing failures have held up for so long is parked. */
  readonly giveUpMs: number;
  /** What fails for other reasons, or stays unknown at the provider, is parked after so many attempts. */
  readonly attempts: number;
}

/** What is waited for in service. */
export const RETRY_POLICY: RetryPolicy = {
  retryMs: 50,
  retryAtMostMs: 15_000,
  answerMs: 15_000,
  askAgainMs: 20 * 3_600_000,
  authenticationMs: AUTHENTICATION_MS,
  lookMs: 5_000,
  giveUpMs: 24 * 3_600_000,
  attempts: 10,
};

/** It can't be done, and trying again won't help: the message is the cause to park it with. */
export class GiveUpError extends Error {
  override readonly name = 'GiveUpError';
}

/**
 * Nothing has failed; there is something to wait for, so long at most. `mayNeverCome`: then it is looked for less and
 * less often, and given up like what fails.
 */
export class NotYetError extends Error {
  override readonly name = 'NotYetError';
  readonly waitMs: number;
  readonly mayNeverCome: boolean;
  constructor(message: string, waitMs: number, { mayNeverCome = false } = {}) {
    super(message);
    this.waitMs = waitMs;
    this.mayNeverCome = mayNeverCome;
  }
}

/**
 * This process may not act at this moment: the work may have passed to another. Nothing was tried, so nothing has
 * failed.
 */
export class NotOursError extends UnavailableError {}

/** A worker's answer. @throws RetryLaterError, GiveUpError when it has none */
export function answered<R extends { readonly outcome: string }>(reply: R | WorkerFailure): R {
  if (!isFailure(reply)) return reply;
  if (reply.outcome === 'impossible') throw new GiveUpError(reply.cause);
  throw new RetryLaterError(reply.cause, reply.after_ms, reply);
}

/** Whether a failure passes by itself: an engine or a provider in trouble, nobody answering yet. */
function passes(error: unknown): boolean {
  return (
    error instanceof UnavailableError ||
    error instanceof NoRespondersError ||
    error instanceof DeadlineError ||
    error instanceof RemoteError ||
    error instanceof RetryLaterError
  );
}

/** Whether what was asked has certainly not been begun. */
export function neverStarted(error: unknown): boolean {
  return (
    error instanceof NoRespondersError ||
    error instanceof RetryLaterError ||
    (error instanceof UnavailableError && !error.outcomeUnknown)
  );
}

/** The wait before the next attempt, after the `attempt`th (from 1) failed. `chance`: from 0 to 1. */
export function waitAfter(
  attempt: number,
  { retryMs, retryAtMostMs }: Pick<RetryPolicy, 'retryMs' | 'retryAtMostMs'>,
  chance: number,
): number {
  return Math.min(retryAtMostMs, retryMs * 2 ** Math.min(attempt - 1, 30)) * (1 - chance / 2);
}

/** What to do after a failure: wait and try again, or park with a cause. `heldUpMs`: for how long it has been tried. */
export function afterFailure(
  error: unknown,
  attempt: number,
  heldUpMs: number,
  retryPolicy: RetryPolicy,
  chance: number,
): { readonly waitMs: number } | { readonly cause: string } {
  const cause = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (error instanceof GiveUpError) return { cause: error.message };
  const waitMs = waitAfter(attempt, retryPolicy, chance);
  if (error instanceof NotYetError) {
    if (!error.mayNeverCome) return { waitMs: error.waitMs };
    return heldUpMs >= retryPolicy.giveUpMs ? { cause: error.message } : { waitMs: Math.max(waitMs, error.waitMs) };
  }
  // Those who were told the same time don't all come at once; one who is held by a limit is never given up.
  const later =
    error instanceof RetryLaterError ? { waitMs: Math.max(waitMs, error.afterMs * (1 + chance / 4)) } : undefined;
  if (later !== undefined && (error as RetryLaterError).limited) return later;
  if (passes(error) ? heldUpMs >= retryPolicy.giveUpMs : attempt >= retryPolicy.attempts) return { cause };
  return later ?? { waitMs };
}
