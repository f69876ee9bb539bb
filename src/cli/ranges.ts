import type { Command } from 'commander';
import { type LogRange, logRange, type TimeRange, timeRange } from '../ops/ranges/range.js';
import { DEFAULT_ZONE, TimeError, type TimeZone, pastInstant, timeZone } from '../ops/ranges/times.js';
import type { EventStore } from '../ports/eventStore.js';
import { usageFailure } from './terminal.js';
import { currentTime } from '../lib/clock.js';

export interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
  readonly timeZone: string;
}

export function rangeOptions(command: Command): Command {
  return command
    .option('--from <time>', 'from this time on: a day, "2026-05-04 12:30" or 2026-05-04T12:30:00Z')
    .option('--to <time>', 'up to this time, or to the end of this day (default: the end of the log)')
    .option('--time-zone <zone>', 'the zone of days, and of times without an offset', DEFAULT_ZONE);
}

/** @throws CommandFailure; UnavailableError */
export async function rangeOf(
  events: EventStore,
  { from, to, timeZone }: RangeFlags,
  after?: string,
): Promise<LogRange> {
  return logRange(events, { zone: zoneOf(timeZone), from, to, after }).catch((error: unknown) => {
    throw usageFaultOf(error);
  });
}

/** @throws CommandFailure */
export function timesOf({ from, to, timeZone }: RangeFlags): TimeRange {
  return read('', () => timeRange({ zone: zoneOf(timeZone), from, to }));
}

export function describeRange({ after, through, from, to, time_zone }: LogRange): string {
  const times = from === null && to === null ? 'the whole log' : `${from ?? 'the beginning'} to ${to ?? 'the end'}`;
  return `${times}: log positions after ${after ?? 'the beginning'} through ${through ?? 'none'}; days are of ${time_zone}`;
}

/** @throws CommandFailure */
export function zoneOf(name: string): TimeZone {
  return read('--time-zone: ', () => timeZone(name));
}

/** The past time that an option names, ISO 8601, UTC. @throws CommandFailure, also for a future time */
export function pastInstantOf(zone: string, text: string, option: string): string {
  const its = zoneOf(zone);
  return read(`${option}: `, () => pastInstant(its, text, currentTime()));
}

function read<T>(prefix: string, value: () => T): T {
  try {
    return value();
  } catch (error) {
    throw usageFaultOf(error, prefix);
  }
}

const usageFaultOf = (error: unknown, prefix = ''): unknown =>
  error instanceof TimeError ? usageFailure(prefix + error.message) : error;
