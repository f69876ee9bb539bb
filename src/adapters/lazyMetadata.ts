/** Events whose metadata is parsed on first access: most readers never need it. */
import type { EventMetadata, RecordedEvent } from '../ports/eventStore.js';
import { storedObject } from './storedJson.js';

export const METADATA = Symbol('metadata');

interface LazyEvent extends Omit<RecordedEvent, 'metadata'> {
  [METADATA]: string | EventMetadata;
}

const GETTER = {
  enumerable: true,
  /** @throws AlteredEventError */
  get(this: LazyEvent): EventMetadata {
    const metadata = this[METADATA];
    return typeof metadata === 'string'
      ? (this[METADATA] = storedObject('metadata', metadata, this) as EventMetadata)
      : metadata;
  },
};

/**
 * Adds metadata as an own property, so that copies of the event retain it. One shared getter gives all events one
 * hidden class.
 */
export function withMetadata(event: LazyEvent): RecordedEvent {
  return Object.defineProperty(event, 'metadata', GETTER) as LazyEvent & RecordedEvent;
}
