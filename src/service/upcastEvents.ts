/** The event log as everything above it reads it: events of older shapes brought up to date (design). */
import { changedTypes, dataUpToDate, type Upcaster, type Upcasters } from '../domain/upcasters.js';
import type { EventBatch, EventStore, RecordedEvent } from '../ports/eventStore.js';

/**
 * The same store; what is read from it has the shapes of this release. While no event has changed its shape it is the
 * very store, and later an event of a type that never did is not looked into: millions are folded. What hands the log
 * on as it stands (copies, backups) reads the store itself.
 */
export function upToDateEvents(events: EventStore, upcasters?: Upcasters): EventStore {
  const changed = changedTypes(upcasters);
  if (changed.size === 0) return events;
  return {
    ...events,
    read: async (stream, options) => eachUpToDate(await events.read(stream, options), changed),
    readAll: (...asked) => batchesUpToDate(events.readAll(...asked), changed),
    follow: (...asked) => batchesUpToDate(events.follow(...asked), changed),
  };
}

async function* batchesUpToDate(
  batches: AsyncIterable<EventBatch>,
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): AsyncGenerator<EventBatch, void> {
  for await (const batch of batches) yield { ...batch, events: eachUpToDate(batch.events, changed) };
}

function eachUpToDate(
  events: readonly RecordedEvent[],
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): RecordedEvent[] {
  return events.map((event) => {
    const steps = changed.get(event.type);
    return steps === undefined ? event : { ...event, data: dataUpToDate(event.data, event.metadata.schema, steps) };
  });
}
