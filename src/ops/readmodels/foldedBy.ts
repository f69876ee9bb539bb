import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';

export interface FoldedOptions {
  readonly events: Pick<EventStore, 'end'>;
  /** Whether the log is read where no build of a read model has caught up: for commands, which need no service. */
  readonly withoutBuilds?: true;
}

/** No build of a read model has caught up: the whole log is read. */
export const NO_BUILD = null;

/** How long read models are waited for, ms: enough alongside a running service. */
const REACH_MS = 500;

/**
 * Position up to which every event is in the documents of all these read models; `undefined`: none is. What follows is
 * read from the log. Waits a moment for the log's present end.
 * @returns `NO_BUILD` where one has none that has caught up, so that the whole log is read
 * @throws UnavailableError, also in place of `NO_BUILD` unless `withoutBuilds`
 */
export async function foldedBy(
  models: readonly Pick<ReadModel<object>, 'reached' | 'folded'>[],
  { events, withoutBuilds }: FoldedOptions,
): Promise<Position | undefined | typeof NO_BUILD> {
  const end = await events.end();
  if (end === undefined) return undefined;
  if ((await Promise.all(models.map(async (one) => one.reached(end, REACH_MS)))).every(Boolean)) return end;
  try {
    const positions = await Promise.all(models.map(async (one) => one.folded()));
    return positions.includes(undefined) ? undefined : (positions as Position[]).toSorted()[0];
  } catch (error) {
    if (withoutBuilds === true && error instanceof UnavailableError) return NO_BUILD;
    throw error;
  }
}
