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
