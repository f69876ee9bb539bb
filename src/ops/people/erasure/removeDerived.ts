/** What was derived from a person's data: read models, and what their builds left behind. */
import type { Position } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import type { ReadModels } from '../../../projections/index.js';

/** A projector that is not as far by then is not working: the same call later goes on. */
const CAUGHT_UP_MS = 30_000;

/** @throws UnavailableError */
export async function removeDerived({ accounts }: Pick<ReadModels, 'accounts'>, position: Position): Promise<void> {
  if (!(await accounts.reached(position, CAUGHT_UP_MS)))
    throw new UnavailableError('the accounts have not reached the erasure yet: repeat it to finish');
}
