import type { Position } from '../../../ports/eventStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { PERSONAL_READ_MODELS, type ReadModels } from '../../../projections/index.js';
import { dropFrozenBuilds } from '../../../runtime/readmodels/index.js';

/** Milliseconds to wait for the projector. A slower one is not working, and the same call continues later. */
const CAUGHT_UP_MS = 30_000;

/**
 * Waits until read models have folded the erasure, drops builds that never will, and leaves nothing in unused parts of
 * files.
 * @throws UnavailableError where some read models are behind: the call must be repeated
 */
export async function removeDerived(
  store: ReadStore,
  { accounts }: Pick<ReadModels, 'accounts'>,
  position: Position,
): Promise<void> {
  if (!(await accounts.reached(position, CAUGHT_UP_MS))) throw unfinished(['accounts']);
  const { behind } = await dropFrozenBuilds(store, PERSONAL_READ_MODELS, position);
  if (behind.length > 0) throw unfinished(behind);
  await store.scrub();
}

/**
 * Error that names the missing projector: without it every repetition ends in the same way, and the command line starts
 * none.
 */
function unfinished(behind: readonly string[]): UnavailableError {
  return new UnavailableError(
    `the erasure is not finished: it has not reached ${behind.join(', ')} yet, for which a process with the role projector must run`,
  );
}
