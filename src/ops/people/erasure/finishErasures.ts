import { randomUUID } from 'node:crypto';
import { pause } from '../../../lib/async/pause.js';
import type { FollowerRun } from '../../../runtime/supervision/followers.js';
import type { ErasureDeps } from './erasureDeps.js';
import { erasePerson, ErasureWaitsError } from './erasePerson.js';
import { storeUndone } from './reapplyErasures.js';
import { storedErasures } from './erasureRecord.js';

const LOOK_MS = 30_000;
/** A younger one is still under way where it was asked for. */
const LEFT_ALONE_MS = 60_000;
/** Each attempt reads the log once. */
const WAITS_MS = 600_000;

/**
 * Finishes erasures that were interrupted, or that waited for money, or that a key store from before them had undone.
 * Runs until `signal` is aborted.
 * @throws UnavailableError
 */
export async function finishErasures(
  deps: ErasureDeps,
  now: () => string,
  { signal, onTrouble }: Pick<FollowerRun, 'signal' | 'onTrouble'>,
): Promise<void> {
  await storeUndone(deps, signal);
  const waitsUntil = new Map<string, number>();
  while (!signal.aborted) {
    // One that fails holds up no other.
    let trouble: Error | undefined;
    for await (const { id, person, reason, by, at, done_at } of storedErasures(deps.keys)) {
      if (done_at !== undefined || Date.parse(now()) - Date.parse(at) < LEFT_ALONE_MS) continue;
      if ((waitsUntil.get(id) ?? 0) > performance.now()) continue;
      const commandId = randomUUID();
      try {
        await erasePerson(deps, person, { commandId, correlationId: commandId, by, now: now() }, reason);
      } catch (error) {
        if (error instanceof ErasureWaitsError) waitsUntil.set(id, performance.now() + WAITS_MS);
        else trouble ??= error instanceof Error ? error : new Error('an erasure failed', { cause: error });
      }
    }
    onTrouble(trouble);
    await pause(LOOK_MS, signal);
  }
}
