/** What process managers keep of an event that they have seen: enough to append after it and to name it as the cause. */
import type { RecordedEvent } from '../ports/eventStore.js';

/** An event, without its data. */
export interface Seen {
  readonly id: string;
  readonly at: string;
  readonly revision: number;
  readonly correlationId: string;
}

/** The part of a recorded event that is kept. */
export function seenOf(event: Pick<RecordedEvent, 'id' | 'at' | 'revision' | 'metadata'>): Seen {
  return { id: event.id, at: event.at, revision: event.revision, correlationId: event.metadata.correlationId };
}
