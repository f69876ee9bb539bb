import type { EventStore } from '../../ports/eventStore.js';
import type { Requested } from './foldEvent.js';
import type { OpenWork } from './openWork.js';
import type { AnyManager } from './processManager.js';

/** Reads an instance's history and opens it again. @returns the intents of the instance */
export async function reopen<D>(
  open: OpenWork<D>,
  events: EventStore,
  manager: AnyManager<D>,
  instance: string,
): Promise<readonly Requested<D>[]> {
  if (manager.history === undefined) throw new Error(`${manager.name}: an instance is opened again without a history`);
  const upTo = open.startReading(manager, instance);
  const history = (await manager.history(events, instance))
    .filter(({ position }) => upTo !== undefined && position <= upTo)
    .sort((one, other) => (one.position < other.position ? -1 : 1));
  return open.reopen(manager, instance, history);
}
