/** A log that is far away, whichever it is. */
import type { Engines } from '../../src/engines.js';

/** The engines, their log as one that can't be asked without a round trip: what is written to it must be waited for by who writes. */
export function farLog(engines: Engines): Engines {
  const { local: _, ...events } = engines.events;
  return { ...engines, events };
}
