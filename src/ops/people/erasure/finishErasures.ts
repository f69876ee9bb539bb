import { randomUUID } from 'node:crypto';
import { Refusal } from '../../../domain/refusal.js';
import { pause } from '../../../lib/async/pause.js';
import type { FollowerRun } from '../../../runtime/supervision/followers.js';
import type { ErasureDeps } from './erasureDeps.js';
import { ErasureWaitsError } from './endPerson.js';
import { erasePerson } from './erasePerson.js';
import { isFinished, storedErasures } from './erasureRecord.js';

const LOOK_MS = 30_000;
/** A younger one is still under way where it was asked for. */
const LEFT_ALONE_MS = 60_000;
/** Each attempt reads the log twice. */
const WAITS_MS = 600_000;

/**
 * Finishes erasures that were interrupted, or that waited for money, or that had to be repeated after a restore. Runs
 * until `signal` is aborted.
 * @throws UnavailableError
 */
export async function finishErasures(
  deps: ErasureDeps,
  now: () => string,
  { signal, onTrouble }: Pick<FollowerRun, 'signal' | 'onTrouble'>,
): Promise<void> {
  const waitsUntil = new Map<string, number>();
  while (!signal.aborted) {
    // One that fails holds up no other.
    let trouble: Error | undefined;
    for await (const erasure of storedErasures(deps.keys)) {
      const { id, person, reason, by, at } = erasure;
      if (isFinished(erasure) || Date.parse(now()) - Date.parse(at) < LEFT_ALONE_MS) continue;
      if ((waitsUntil.get(id) ?? 0) > performance.now()) continue;
      const commandId = randomUUID();
      try {
        await erasePerson(deps, person, { commandId, correlationId: commandId, by, now: now() }, reason);
      } catch (error) {
        if (error instanceof ErasureWaitsError) waitsUntil.set(id, performance.now() + WAITS_MS);
        // A user has taken the number, and the erasure is withdrawn.
        else if (!(error instanceof Refusal))
          trouble ??= error instanceof Error ? error : new Error('an erasure failed', { cause: error });
      }
    }
    onTrouble(trouble);
    await pause(LOOK_MS, signal);
  }
}
