import { PARKED_NAMES, type ParkedEvent, parkedStream, type ParkedName } from '../../domain/parked.js';
import type { EventStore, Position, Recorded } from '../../ports/eventStore.js';
import { isDiscardOpen } from '../../commands/parkedWork.js';
import { inParallel } from '../../lib/async/inParallel.js';

const PAGE = 500;
const READS_AT_ONCE = 8;

interface Discard {
  readonly step: string;
  readonly position: Position;
}

/**
 * Counts parked work that waits for support, and discards that were interrupted: nothing but a person ends either. Each
 * call reads only events that are new since the last, and the streams of discards that had not ended by then.
 */
export function parkedWork(events: EventStore): () => Promise<ReadonlyMap<ParkedName, number>> {
  const known = new Map(
    PARKED_NAMES.map((name) => [name, { next: 0, open: new Set<string>(), ending: new Map<string, Discard>() }]),
  );
  let looking: Promise<void> = Promise.resolve();

  const refresh = async (): Promise<void> => {
    for (const [name, state] of known) {
      for (let full = true; full;) {
        const page = await events.read(parkedStream(name), { from: state.next, limit: PAGE });
        for (const event of page) {
          const { type, data } = event as Recorded<ParkedEvent>;
          state.open.delete(data.entity);
          state.ending.delete(data.entity);
          if (type === 'WorkParked') state.open.add(data.entity);
          if (type === 'WorkDiscarded') state.ending.set(data.entity, { step: data.step, position: event.position });
          state.next = event.revision + 1;
        }
        full = page.length === PAGE;
      }
      await inParallel([...state.ending], READS_AT_ONCE, async ([entity, { step, position }]) => {
        if (!(await isDiscardOpen(events, { name, step, entity }, position))) state.ending.delete(entity);
      });
    }
  };

  return async () => {
    // Scans run one after the other: concurrent scans would read the same events twice.
    looking = looking.then(refresh, refresh);
    await looking;
    return new Map([...known].map(([name, { open, ending }]) => [name, open.size + ending.size]));
  };
}
