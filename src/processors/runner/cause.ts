/** Enough of an event to append after it and to name it as the cause. */
import type { RecordedEvent } from '../../ports/eventStore.js';

export interface Cause {
  readonly id: string;
  readonly at: string;
  readonly revision: number;
  readonly correlationId: string;
  /** The trace of the event, where it was traced. */
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
