import { pause } from '../../../lib/async/pause.js';
import type { Projection } from '../projection.js';
import { startProjector } from '../projector.js';
import type { RebuildDeps } from './rebuild.js';

const LOOK_MS = 50;

/**
 * Waits for the leading process. A projector for this projection stands by, and leads if no other process does.
 * @returns false when `signal` was aborted first
 * @throws UnavailableError; Error when the read store belongs to another log
 */
export async function waitWithStandby(
  deps: RebuildDeps,
  projection: Projection,
  signal: AbortSignal,
  done: () => Promise<boolean>,
): Promise<boolean> {
  const { events, store, logger, holder, leaseMs } = deps;
  if (await done()) return true;
  const projector = await startProjector({ events, store, projections: [projection], logger, holder, leaseMs });
  try {
    while (!signal.aborted) {
      if (await done()) return true;
      await pause(LOOK_MS, signal);
    }
    return false;
  } finally {
    await projector.close();
  }
}
