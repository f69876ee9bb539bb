/** Days and times of a time zone, as auditors write them (docs/support.md#spans-of-time). */
import { inAscii, shortened } from '../../lib/quotedText.js';
import { startOfDay, writtenTime } from '../../lib/writtenTime.js';

export const DEFAULT_ZONE = 'Europe/London';

const DAY_MS = 86_400_000;

/** A time or time zone is invalid. The message shows the right form. */
export class TimeError extends Error {
  override readonly name = 'TimeError';
  /** Name of the request's faulty parameter, as under `/ops`, where the message tells which it is. */
  readonly field: string | undefined;
  constructor(message: string, field?: string) {
    super(message);
    this.field = field;
  }
}

export interface TimeZone {
  readonly name: string;
  /** The day (`YYYY-MM-DD`) of an ISO 8601 time in UTC. Fast for ascending times. */
  dayOf(iso: string): string;
  /**
   * Instant that a text names: ISO 8601, UTC, milliseconds. `text` is a time with an offset (`2026-05-04T12:30:00Z`), a
   * time of the zone (`2026-05-04 12:30`), or a day, of which `edge` is returned.
   * @throws TimeError
   */
  instant(text: string, edge: 'first' | 'last'): string;
}

/** A time zone by its IANA name, or UTC. @throws TimeError */
export function timeZone(name: string): TimeZone {
  const clock = clockOf(name);
  let minute = '';
  let day = '';

  /** The zone's wall clock at an instant, as if it were UTC, ms. */
  function wallClock(ms: number): number {
    const parts: Record<string, number> = {};
    for (const { type, value } of clock.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day: date = 1, hour = 0, minute: minutes = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, date, hour, minutes, second) + (((ms % 1_000) + 1_000) % 1_000);
  }

  /**
   * Instant of a wall clock time. When clocks go back, it is the earlier of two; in a gap, it is as much later as the
   * gap is long.
   */
  function instantOf(wall: number): number {
    const candidates = [wall - DAY_MS, wall + DAY_MS].map((near) => wall - (wallClock(near) - near));
    return (
      candidates.toSorted((one, other) => one - other).find((candidate) => wallClock(candidate) === wall) ??
      Math.max(...candidates)
    );
  }

  return {
    name,
    dayOf(iso) {
      // No zone's day starts within a minute.
      const now = iso.slice(0, 16);
      if (now !== minute) {
        minute = now;
        day = new Date(wallClock(Date.parse(iso))).toISOString().slice(0, 10);
      }
      return day;
    },
    instant(given, edge) {
      const text = given.trim();
      const day = startOfDay(text);
      if (day !== undefined) return iso(edge === 'first' ? instantOf(day) : instantOf(day + DAY_MS) - 1);
      const time = writtenTime(text);
      if (time === undefined) throw notATime(given);
      return iso(time.ahead === undefined ? instantOf(time.wall) : time.wall - time.ahead);
    },
  };
}

/**
 * The last instant of a day or time, as `instant` reads it; `now` (ISO 8601, UTC) for the present day.
 * @throws TimeError, also for the future
 */
export function pastInstant(zone: TimeZone, text: string, now: string): string {
  const last = zone.instant(text, 'last');
  if (last <= now) return last;
  if (zone.instant(text, 'first') > now) throw new TimeError(`${quoted(text)} is still to come: it is ${now} now`);
  return now;
}

function clockOf(name: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new TimeError(`${quoted(name)} is not a time zone: give one such as Europe/London or UTC`, 'time_zone');
  }
}

/** Times of other years have a sign, and so do not sort as text. */
const FIRST = Date.parse('0000-01-01T00:00:00.000Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');

const iso = (ms: number): string => new Date(Math.min(LAST, Math.max(FIRST, ms))).toISOString();

function notATime(given: string): TimeError {
  return new TimeError(
    `${quoted(given)} is not a time: give one such as 2026-05-04, 2026-05-04T12:30 or 2026-05-04T12:30:00Z`,
  );
}

function quoted(text: string): string {
  return JSON.stringify(shortened(inAscii(text), 40));
}
