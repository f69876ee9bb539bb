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

export interface FinishingOptions {
  readonly now: () => string;
  readonly lookMs?: number;
  readonly leftAloneMs?: number;
}

/**
 * Finishes erasures that were interrupted, or that waited for money, or that a key store from before them had undone.
 * Runs until `signal` is aborted.
 * @throws UnavailableError
 */
export async function finishErasures(
  deps: ErasureDeps,
  { now, lookMs = LOOK_MS, leftAloneMs = LEFT_ALONE_MS }: FinishingOptions,
  { signal, well }: Pick<FollowerRun, 'signal' | 'well'>,
): Promise<void> {
  await storeUndone(deps, signal);
  const waitsUntil = new Map<string, number>();
  while (!signal.aborted) {
    for await (const { id, person, reason, by, at, done_at } of storedErasures(deps.keys)) {
      if (done_at !== undefined || Date.parse(now()) - Date.parse(at) < leftAloneMs) continue;
      if ((waitsUntil.get(id) ?? 0) > performance.now()) continue;
      const commandId = randomUUID();
      try {
        await erasePerson(deps, person, { commandId, correlationId: commandId, by, now: now() }, reason);
      } catch (error) {
        if (!(error instanceof ErasureWaitsError)) throw error;
        waitsUntil.set(id, performance.now() + WAITS_MS);
      }
    }
    well();
    await pause(lookMs, signal);
  }
}
