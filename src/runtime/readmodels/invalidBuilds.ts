/**
 * Builds whose stored checkpoint is no place in the log. What was folded into them can't be known any more: they may
 * lack events that stand before their checkpoint, or have seen more than the log holds since it was put back to an
 * earlier time. So checkpoint and documents count as absent, and the build is made anew. One in use is taken out of use
 * first, and made anew under a number that no build has had: a process that remembers how far the old one was must not
 * take that for the new one's. Until the new one has caught up, what readers ask of it is 503.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ReadStore } from '../../ports/readStore.js';
import { LOOKS, positionFault, type ReachedLog, shownPosition } from '../../ports/storedPosition.js';
import { checkpointName, type Projection } from './projection.js';
import { setFirstNumber, buildOf, nextNumber } from './builds.js';
import type { Lease } from '../coordination/lease.js';
import { SwapOutdatedError } from './swap.js';
import { dropBuild } from './unusedBuilds.js';
import { LeaseLostError } from './writer.js';

/** So long after a build was taken out of use, in ms, all readers know (`readModel.ts`): then its documents can go. */
const NOTICED_MS = 2_000;

/** The engines that are looked at, and the right to write to the build. */
export interface BuildCheck {
  readonly store: ReadStore;
  readonly events: ReachedLog;
  readonly logger: Logger;
  readonly lease: Pick<Lease, 'held'>;
}

/**
 * Empties a build whose checkpoint is no place in the log, and takes it out of use; any other stays as it is.
 * @returns whether it was one. @throws LeaseLostError, SwapOutdatedError, UnavailableError
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
  const told = `the stored position of a read model ${fault}: it counts as absent, and the read model is built anew`;
  logger.warn({ projection, checkpoint: shownPosition(stored) }, `projector: ${told}${meanwhile}`);
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
