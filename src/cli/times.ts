import { TimeError, type TimeZone, pastInstant, timeZone } from '../ops/ranges/times.js';
import { currentTime } from '../lib/clock.js';
import { usageFailure } from './terminal.js';

/** @throws CommandFailure */
export function zoneOf(name: string): TimeZone {
  return inWords('--time-zone', () => timeZone(name));
}

/** The past time that an option names, ISO 8601, UTC. @throws CommandFailure, also for a future time */
export function pastInstantOf(zone: string, text: string, option: string): string {
  const its = zoneOf(zone);
  return inWords(option, () => pastInstant(its, text, currentTime()));
}

function inWords<T>(option: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof TimeError) throw usageFailure(`${option}: ${error.message}`);
    throw error;
  }
}
