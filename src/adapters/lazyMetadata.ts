/**
 * Events as adapters make them from what is stored: metadata is parsed when it is first looked at, and most readers
 * never do.
 */
import type { EventMetadata, RecordedEvent } from '../ports/eventStore.js';

/** Where an event keeps its metadata: as it was stored, in JSON, until it is first looked at. */
export const METADATA = Symbol('metadata');

/** An event that is being made. */
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
 * Gives it `metadata`. An own property all the same, so that copies of the event keep it, and one getter for all, so
 * that the engine keeps one shape for all.
 */
export function withMetadata(event: LazyEvent): RecordedEvent {
  return Object.defineProperty(event, 'metadata', GETTER) as unknown as RecordedEvent;
}
