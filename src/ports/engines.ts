import type { Bus } from './bus.js';
import type { EventStore } from './eventStore.js';
import type { ReadStore } from './readStore.js';

export interface Engines {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly bus: Bus;
}
