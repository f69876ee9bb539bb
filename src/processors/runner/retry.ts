import { AUTHENTICATION_MS } from '../../domain/purchase/decisions.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../ports/bus.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { AlteredDataError } from '../../runtime/personal/index.js';
import { isFailure, RetryLaterError, type WorkerFailure } from '../../messages/workerFailure.js';
import { MalformedMessageError } from '../../messages/workerRequest.js';

/** When work is repeated or parked. All values are in milliseconds, except `attempts`. */
export interface RetryPolicy {
  /** The first pause. It doubles up to `retryAtMostMs`, less up to half of it at random. */
  readonly retryMs: number;
  readonly retryAtMostMs: number;
  /** Longest wait for a worker's answer. */
  readonly answerMs: number;
  /** How long a charge may be repeated under its key: providers forget keys after 24 h. Later it is only looked up. */
  readonly askAgainMs: number;
  /** A buyer's time to authenticate. */
  readonly authenticationMs: number;
  /** The first pause before polling whether the buyer has authenticated; it triples. Usually a webhook comes first. */
  readonly pollMs: number;
  /** Work is parked after failing for this long in ways that pass by themselves. */
  readonly giveUpMs: number;
  /** Work is parked after failing this often in other ways. */
  readonly attempts: number;
}

export const RETRY_POLICY: RetryPolicy = {
  retryMs: 50,
  retryAtMostMs: 15_000,
  answerMs: 15_000,
  askAgainMs: 20 * 3_600_000,
  authenticationMs: AUTHENTICATION_MS,
  pollMs: 5_000,
  giveUpMs: 24 * 3_600_000,
  attempts: 10,
};

/** Work that retrying can't help. The message is the cause to park it with. */
export class GiveUpError extends Error {
  override readonly name = 'GiveUpError';
}

/** Work must wait, though nothing has failed. `mayNeverCome`: the pauses grow, and it is parked after `giveUpMs`. */
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

/** The reply of a worker. @throws RetryLaterError, GiveUpError where the worker failed */
export function answered<R extends { readonly outcome: string }>(reply: R | WorkerFailure): R {
  if (!isFailure(reply)) return reply;
  if (reply.outcome === 'impossible') throw new GiveUpError(reply.cause);
  throw new RetryLaterError(reply.cause, reply.after_ms, reply);
}

/** Whether the failure passes by itself. */
export function passes(error: unknown): boolean {
  return (
    error instanceof NotYetError ||
    error instanceof UnavailableError ||
    error instanceof NoRespondersError ||
    error instanceof DeadlineError ||
    error instanceof RemoteError ||
    // A worker of another release answered.
    error instanceof MalformedMessageError ||
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

/** Milliseconds to wait after attempt number `attempt` (from 1) has failed. `chance`: random, from 0 to 1. */
export function waitAfter(
  attempt: number,
  { retryMs, retryAtMostMs }: Pick<RetryPolicy, 'retryMs' | 'retryAtMostMs'>,
  chance: number,
): number {
  return Math.min(retryAtMostMs, retryMs * 2 ** Math.min(attempt - 1, 30)) * (1 - chance / 2);
}

/**
 * The wait, or the cause to park with, after attempt number `attempt` (from 1) has failed. `failures`: failures so far,
 * including this one, that do not pass by themselves. `chance`: random, from 0 to 1.
 */
export function afterFailure(
  error: unknown,
  { attempt, failures, heldUpMs }: { readonly attempt: number; readonly failures: number; readonly heldUpMs: number },
  retryPolicy: RetryPolicy,
  chance: number,
): { readonly waitMs: number } | { readonly cause: string } {
  const cause = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (error instanceof GiveUpError || error instanceof AlteredDataError) return { cause: error.message };
  const waitMs = waitAfter(attempt, retryPolicy, chance);
  if (error instanceof NotYetError) {
    if (!error.mayNeverCome) return { waitMs: error.waitMs };
    return heldUpMs >= retryPolicy.giveUpMs ? { cause: error.message } : { waitMs: Math.max(waitMs, error.waitMs) };
  }
  // Spreads jobs with the same wait. A limit of our own is waited for however long it takes.
  const later =
    error instanceof RetryLaterError ? { waitMs: Math.max(waitMs, error.afterMs * (1 + chance / 4)) } : undefined;
  if (later !== undefined && (error as RetryLaterError).limited) return later;
  if (passes(error) ? heldUpMs >= retryPolicy.giveUpMs : failures >= retryPolicy.attempts) return { cause };
  return later ?? { waitMs };
}
