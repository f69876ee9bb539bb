/** A log that tells no stream's last event, whichever it is. */
import type { Engines } from '../../../src/ports/engines.js';

/**
 * The engines, their log as one that can't be asked for a stream's last event: what is written to it must be waited for
 * by who writes.
 */
export function farLog(engines: Engines): Engines {
  const { local: _, lastOf: _lastOf, ...events } = engines.events;
  return { ...engines, events };
}
