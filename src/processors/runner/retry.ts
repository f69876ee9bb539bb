/** Which failures pass, and how long to wait before the next attempt. */
import { AUTHENTICATION_MS } from '../../domain/purchase/decisions.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../ports/bus.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { isFailure, RetryLaterError, type WorkerFailure } from '../../messages/workerFailure.js';

/** All in milliseconds. */
export interface RetryPolicy {
  /**
   * The pause after the first failure; each further one doubles it, up to `retryAtMostMs`, less up to half by chance.
   */
  readonly retryMs: number;
  readonly retryAtMostMs: number;
  /** How long a worker's answer is waited for. */
  readonly answerMs: number;
  /** How long a charge may be repeated under its key: providers forget keys after 24 h. Later it is only looked up. */
  readonly askAgainMs: number;
  /** How long a buyer has to authenticate. */
  readonly authenticationMs: number;
  /**
   * The pause before the first look whether they have, then three times that and so on. Usually a webhook comes first.
   */
  readonly lookMs: number;
  /** After so long, work is parked that failures hold up which pass by themselves. */
  readonly giveUpMs: number;
  /** After so many attempts, work is parked that fails for other reasons. */
  readonly attempts: number;
}

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

/** Trying again won't help. The message is the cause to park it with. */
export class GiveUpError extends Error {
  override readonly name = 'GiveUpError';
}

/**
 * Nothing has failed: there is something to wait for. `mayNeverCome`: the pauses grow, and the work is given up like a
 * failing one.
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

/** This process may not act now: another one may have the work. Nothing was tried, so nothing has failed. */
export class NotOursError extends UnavailableError {}

/** A worker's answer. @throws RetryLaterError, GiveUpError when it has none */
export function answered<R extends { readonly outcome: string }>(reply: R | WorkerFailure): R {
  if (!isFailure(reply)) return reply;
  if (reply.outcome === 'impossible') throw new GiveUpError(reply.cause);
  throw new RetryLaterError(reply.cause, reply.after_ms, reply);
}

/** Whether a failure passes by itself. */
function passes(error: unknown): boolean {
  return (
    error instanceof UnavailableError ||
    error instanceof NoRespondersError ||
    error instanceof DeadlineError ||
    error instanceof RemoteError ||
    error instanceof RetryLaterError
  );
}

/** Whether the request was certainly not carried out. */
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

/** Wait and try again, or park with a cause. `heldUpMs`: for how long it has been tried. */
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
  // Jobs with the same time don't all come at once; a limit of our own is waited for however long.
  const later =
    error instanceof RetryLaterError ? { waitMs: Math.max(waitMs, error.afterMs * (1 + chance / 4)) } : undefined;
  if (later !== undefined && (error as RetryLaterError).limited) return later;
  if (passes(error) ? heldUpMs >= retryPolicy.giveUpMs : attempt >= retryPolicy.attempts) return { cause };
  return later ?? { waitMs };
}
