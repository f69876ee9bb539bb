/** Events whose metadata is parsed on first access: most readers never look at it. */
import type { EventMetadata, RecordedEvent } from '../ports/eventStore.js';

/** Holds an event's metadata: JSON until the first access. */
export const METADATA = Symbol('metadata');

export interface LazyEvent extends Omit<RecordedEvent, 'metadata'> {
  [METADATA]: string | EventMetadata;
}

const GETTER = {
  enumerable: true,
  get(this: LazyEvent): EventMetadata {
    const metadata = this[METADATA];
    return typeof metadata === 'string' ? (this[METADATA] = JSON.parse(metadata) as EventMetadata) : metadata;
  },
};

/**
 * Adds `metadata`: an own property, so that copies of the event keep it, with one getter for all, so that all events
 * have one hidden class.
 */
export function withMetadata(event: LazyEvent): RecordedEvent {
  return Object.defineProperty(event, 'metadata', GETTER) as unknown as RecordedEvent;
}
