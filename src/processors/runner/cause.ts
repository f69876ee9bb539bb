/** The parts of an event that are needed to append after it and to name it as the cause. */
import type { RecordedEvent } from '../../ports/eventStore.js';

export interface Cause {
  readonly id: string;
  readonly at: string;
  readonly revision: number;
  readonly correlationId: string;
  /** Trace context of the event; absent where it was not traced. */
  readonly traceparent?: string;
}

export function causeOf({
  id,
  at,
  revision,
  metadata,
}: Pick<RecordedEvent, 'id' | 'at' | 'revision' | 'metadata'>): Cause {
  const { correlationId, traceparent } = metadata;
  return { id, at, revision, correlationId, ...(traceparent === undefined ? {} : { traceparent }) };
}
