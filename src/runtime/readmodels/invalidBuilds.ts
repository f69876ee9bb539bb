/**
 * A stored checkpoint may be no position of the log, for example after a restore. Its build may lack earlier events, or
 * hold events that the log lacks, so it is made again. A build in use is first taken out of use, and its number is
 * never used again, since processes remember its documents. Reads answer 503 until the new build has caught up.
 */
import type { Logger } from 'pino';
import { sleep } from '../../lib/world.js';
import type { ReadStore } from '../../ports/readStore.js';
import { LOOKS, positionFault, type ReachedLog, shownPosition } from '../../ports/storedPosition.js';
import { checkpointName, type Projection } from './projection.js';
import { buildOf } from './buildNumbers.js';
import { setFirstNumber, nextNumber } from './ownBuild.js';
import type { Lease } from '../coordination/index.js';
import { SwapOutdatedError } from './swap.js';
import { dropBuild } from './unusedBuilds.js';
import { LeaseLostError } from './writer.js';

/** After this long every reader knows that a build is out of use (`readModel.ts`). */
const NOTICED_MS = 2_000;

export interface BuildCheck {
  readonly store: ReadStore;
  readonly events: ReachedLog;
  readonly logger: Logger;
  readonly lease: Pick<Lease, 'held'>;
}

/**
 * Empties a build with an invalid checkpoint. @returns whether it was invalid
 * @throws LeaseLostError, SwapOutdatedError, UnavailableError
 */
export async function emptyIfInvalid(check: BuildCheck, build: Pick<Projection, 'name' | 'version'>): Promise<boolean> {
  const { store, events, logger, lease } = check;
  const { name, version: number } = build;
  const projection = checkpointName(build);
  const stored = await store.checkpoint(projection);
  const fault = stored === undefined ? undefined : await positionFault(events, stored, LOOKS.most);
  if (fault === undefined) return false;
  const used = (await store.active(name)) === number;
  const meanwhile = used ? '; until then what is asked of it is answered with 503' : '';
  const text = `the stored position of a read model ${fault}: it counts as absent, and the read model is built anew`;
  logger.warn({ projection, checkpoint: shownPosition(stored) }, `projector: ${text}${meanwhile}`);
  if (!lease.held) throw new LeaseLostError();
  if (used) {
    await setFirstNumber(store, name, await nextNumber(store, { name, version: buildOf(number).version }));
    if (!(await store.deactivate(name, number))) throw new SwapOutdatedError(name);
    await sleep(NOTICED_MS);
    if (!lease.held) throw new LeaseLostError();
  }
  await dropBuild(store, name, number);
  return true;
}
