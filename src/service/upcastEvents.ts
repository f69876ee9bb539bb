import { changedTypes, dataUpToDate, type Upcaster, type Upcasters } from '../domain/upcasters.js';
import type { EventBatch, EventStore, RecordedEvent } from '../ports/eventStore.js';

/**
 * The log with events upcast to this release (docs/design.md#versions-of-events). Without changed event types it is the
 * same store, and events of other types are passed through. Copies and backups read the store itself.
 */
export function upcastEvents(events: EventStore, upcasters?: Upcasters): EventStore {
  const changed = changedTypes(upcasters);
  if (changed.size === 0) return events;
  const { readTexts: _, ...others } = events;
  return {
    ...others,
    read: async (stream, options) => upcastEach(await events.read(stream, options), changed),
    readAll: (...asked) => upcastBatches(events.readAll(...asked), changed),
    follow: (...asked) => upcastBatches(events.follow(...asked), changed),
  };
}

async function* upcastBatches(
  batches: AsyncIterable<EventBatch>,
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): AsyncGenerator<EventBatch, void> {
  for await (const batch of batches) yield { ...batch, events: upcastEach(batch.events, changed) };
}

function upcastEach(
  events: readonly RecordedEvent[],
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): RecordedEvent[] {
  return events.map((event) => {
    const steps = changed.get(event.type);
    return steps === undefined ? event : { ...event, data: dataUpToDate(event.data, event.metadata.schema, steps) };
  });
}
