/** Opens an instance again whose state only its history tells. */
import type { EventStore } from '../../ports/eventStore.js';
import type { Asked, OpenWork } from './openWork.js';
import type { AnyManager } from './processManager.js';

/** Reads the history up to where the feed stands, and opens the instance. @returns what is to be done for it */
export async function reopen<D>(
  open: OpenWork<D>,
  events: EventStore,
  manager: AnyManager<D>,
  instance: string,
): Promise<readonly Asked<D>[]> {
  if (manager.history === undefined) throw new Error(`${manager.name}: an instance is opened again without a history`);
  const upTo = open.startReading(manager, instance);
  const history = (await manager.history(events, instance))
    .filter(({ position }) => upTo !== undefined && position <= upTo)
    .sort((one, other) => (one.position < other.position ? -1 : 1));
  return open.reopen(manager, instance, history);
}
