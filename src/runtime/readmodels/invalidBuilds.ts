/**
 * Builds whose stored checkpoint is no place in the log: they may lack events below it, or hold more than a log that
 * was put back. Checkpoint and documents count as absent, and the build is made anew. A build in use is taken out of
 * use first, and made anew under a number that none has had: what a process remembers of the old one must not count for
 * the new one. Reads are 503 until that has caught up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ReadStore } from '../../ports/readStore.js';
import { LOOKS, positionFault, type ReachedLog, shownPosition } from '../../ports/storedPosition.js';
import { checkpointName, type Projection } from './projection.js';
import { buildOf } from './buildNumbers.js';
import { setFirstNumber, nextNumber } from './ownBuild.js';
import type { Lease } from '../coordination/lease.js';
import { SwapOutdatedError } from './swap.js';
import { dropBuild } from './unusedBuilds.js';
import { LeaseLostError } from './writer.js';

/** After so long, in ms, all readers know that a build is out of use (`readModel.ts`): its documents can go. */
const NOTICED_MS = 2_000;

export interface BuildCheck {
  readonly store: ReadStore;
  readonly events: ReachedLog;
  readonly logger: Logger;
  readonly lease: Pick<Lease, 'held'>;
}

/**
 * Empties a build whose checkpoint is no place in the log, and takes it out of use. @returns whether it was one.
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
