import { RetryLaterError } from '../messages/workerFailure.js';
import type { Records } from '../ports/readStore.js';

const OUTAGE_MS = 3_600_000;

/**
 * Refuses requests of this key as a simulated provider, for an hour from the first one on.
 * @param what state of the provider during the outage, for the error's message
 * @throws RetryLaterError
 */
export async function refuseDuringOutage(
  records: Records,
  key: string,
  { what, now, retainedMs }: { readonly what: string; readonly now: () => number; readonly retainedMs: number },
): Promise<void> {
  await records.put(key, now() + OUTAGE_MS, { expected: 0, expiresAt: now() + retainedMs });
  const leftMs = ((await records.get<number>(key))?.value ?? 0) - now();
  if (leftMs > 0) throw new RetryLaterError(`the simulated provider is ${what}`, leftMs);
}

const FAILURES = 2;

/** Fails the first two requests of this key. @throws the failure */
export async function failTwice(records: Records, key: string, failure: () => Error, expiresAt: number): Promise<void> {
  const count = ((await records.get<number>(key))?.value ?? 0) + 1;
  if (count > FAILURES) return;
  await records.put(key, count, { expiresAt });
  throw failure();
}
