/** A log without streams' last events. */
import type { Engines } from '../../../src/ports/engines.js';

/** The engines with such a log: writers must wait for their events. */
export function farLog(engines: Engines): Engines {
  const { local: _, lastOf: _lastOf, ...events } = engines.events;
  return { ...engines, events };
}
