import { parkedId, type ParkedName, parkedNameOf, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import type { RecordedEvent } from '../../ports/eventStore.js';

/** How often in a row work was parked; known from the work's retry until it is done or parked again. */
export interface ParkedTimes {
  note(event: RecordedEvent): void;
  forget(name: ParkedName, entity: string): void;
  of(name: ParkedName, entity: string): number;
}

export function parkedTimes(): ParkedTimes {
  const byId = new Map<string, number>();

  const forget = (name: ParkedName, entity: string): void => {
    if (byId.size > 0) byId.delete(parkedId(name, entity));
  };

  return {
    note(event) {
      if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return;
      const name = parkedNameOf(event.stream);
      if (name === undefined) return;
      if (event.type === 'WorkParked') return forget(name, (event.data as WorkParked['data']).entity);
      const { entity, times } = event.data as WorkRetried['data'];
      byId.set(parkedId(name, entity), times);
    },
    forget,
    of: (name, entity) => byId.get(parkedId(name, entity)) ?? 0,
  };
}
