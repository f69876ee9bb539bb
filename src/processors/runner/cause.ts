/**
 * What process managers keep of an event that they have seen: enough to append after it and to name it as the cause.
 */
import type { RecordedEvent } from '../../ports/eventStore.js';

/** An event, without its data. */
export interface Cause {
  readonly id: string;
  readonly at: string;
  readonly revision: number;
  readonly correlationId: string;
  /** The trace that it belongs to, where it was traced. */
  readonly traceparent?: string;
}

/** The part of a recorded event that is kept. */
export function causeOf({
  id,
  at,
  revision,
  metadata,
}: Pick<RecordedEvent, 'id' | 'at' | 'revision' | 'metadata'>): Cause {
  const { correlationId, traceparent } = metadata;
  return { id, at, revision, correlationId, ...(traceparent === undefined ? {} : { traceparent }) };
}
