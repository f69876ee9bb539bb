import { randomUUID } from 'node:crypto';
import { Refusal } from '../../../domain/refusal.js';
import { pause } from '../../../lib/async/pause.js';
import type { FollowerRun } from '../../../runtime/supervision/followers.js';
import type { ErasureDeps } from './erasureDeps.js';
import { ErasureWaitsError } from './endPerson.js';
import { erasePerson } from './erasePerson.js';
import { isFinished, isRequest, storedErasures } from './erasureRecord.js';
import { isDue } from './requestErasure.js';

const LOOK_MS = 30_000;
/**
 * Milliseconds after which an erasure counts as interrupted: a younger one is still in progress where it was requested.
 */
const LEFT_ALONE_MS = 60_000;
/** Milliseconds between two attempts of an erasure that waits for money, since each attempt reads the log twice. */
const WAITS_MS = 600_000;

/**
 * Carries out requests that are due, and finishes erasures that were interrupted, or that waited for money, or that had
 * to be repeated after a restore. Runs until `signal` is aborted.
 * @throws UnavailableError
 */
export async function finishErasures(
  deps: ErasureDeps,
  now: () => string,
  { signal, onTrouble }: Pick<FollowerRun, 'signal' | 'onTrouble'>,
): Promise<void> {
  const waitsUntil = new Map<string, number>();
  while (!signal.aborted) {
    // An erasure that fails must not hold up the others.
    let trouble: Error | undefined;
    for await (const erasure of storedErasures(deps.keys)) {
      const { id, person, reason, by, at, started_at = at } = erasure;
      if (isFinished(erasure) || (waitsUntil.get(id) ?? 0) > performance.now()) continue;
      if (!isRequest(erasure) && Date.parse(now()) - Date.parse(started_at) < LEFT_ALONE_MS) continue;
      const commandId = randomUUID();
      const context = { commandId, correlationId: commandId, by, now: now() };
      try {
        if (isRequest(erasure) && !(await isDue(deps, erasure, context))) continue;
        await erasePerson(deps, person, context, reason);
      } catch (error) {
        if (error instanceof ErasureWaitsError) waitsUntil.set(id, performance.now() + WAITS_MS);
        // A refused erasure is no failure: it is withdrawn for a user with that number, or the person became staff.
        else if (!(error instanceof Refusal))
          trouble ??= error instanceof Error ? error : new Error('an erasure failed', { cause: error });
      }
    }
    onTrouble(trouble);
    await pause(LOOK_MS, signal);
  }
}
