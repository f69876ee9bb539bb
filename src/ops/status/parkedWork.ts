import { PARKED_NAMES, type ParkedEvent, parkedStream, type ParkedName } from '../../domain/parked.js';
import type { EventStore, Recorded } from '../../ports/eventStore.js';

const PAGE = 500;

/** Counts parked work that waits for support. Each call reads only events that are new since the last. */
export function parkedWork(events: EventStore): () => Promise<ReadonlyMap<ParkedName, number>> {
  const known = new Map(PARKED_NAMES.map((name) => [name, { next: 0, open: new Set<string>() }]));
  let looking: Promise<void> = Promise.resolve();

  const refresh = async (): Promise<void> => {
    for (const [name, state] of known) {
      for (let full = true; full;) {
        const page = await events.read(parkedStream(name), { from: state.next, limit: PAGE });
        for (const event of page) {
          const { type, data } = event as Recorded<ParkedEvent>;
          if (type === 'WorkParked') state.open.add(data.entity);
          else state.open.delete(data.entity);
          state.next = event.revision + 1;
        }
        full = page.length === PAGE;
      }
    }
  };

  return async () => {
    // Scans run one after the other: concurrent scans would read the same events twice.
    looking = looking.then(refresh, refresh);
    await looking;
    return new Map([...known].map(([name, { open }]) => [name, open.size]));
  };
}
