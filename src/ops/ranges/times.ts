/** Times and days in a time zone, as auditors write them, resolved to UTC (docs/decisions.md#spans-of-time). */
import { inAscii, shortened } from '../../lib/quotedText.js';

/** The default zone of days and of times without an offset. */
export const DEFAULT_ZONE = 'Europe/London';

const DAY_MS = 86_400_000;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const LOCAL = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?$/;
const ABSOLUTE =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3})\d{0,6})?)?(?:Z|([+-])(\d\d):?([0-5]\d))$/i;

/** A malformed time or unknown zone; the message shows the right form. */
export class TimeError extends Error {
  override readonly name = 'TimeError';
}

export interface TimeZone {
  /** As it was given: `Europe/London`. */
  readonly name: string;
  /** The day (`YYYY-MM-DD`) of an ISO 8601 time in UTC. Fast for ascending times. */
  dayOf(iso: string): string;
  /**
   * The instant (ISO 8601, UTC, milliseconds) of a text: a time with an offset (`2026-05-04T12:30:00Z`), a time of the
   * zone (`2026-05-04 12:30`), or a day, whose first or last instant is meant by `edge`.
   * @throws TimeError
   */
  instant(text: string, edge: 'first' | 'last'): string;
}

/** IANA name, or UTC. @throws TimeError */
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

  /** The instant of a wall clock's time: of two the earlier, in a gap that much later. */
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
      const absolute = ABSOLUTE.exec(text);
      if (absolute !== null) {
        const [sign, hours, minutes] = absolute.slice(8);
        const ahead = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * (sign === '-' ? -60_000 : 60_000);
        return iso(wallOf(absolute.slice(1, 8), given) - ahead);
      }
      const date = DATE.exec(text);
      if (date !== null) {
        const wall = wallOf(date.slice(1), given);
        return iso(edge === 'first' ? instantOf(wall) : instantOf(wall + DAY_MS) - 1);
      }
      const local = LOCAL.exec(text);
      if (local === null) throw notATime(given);
      return iso(instantOf(wallOf(local.slice(1), given)));
    },
  };
}

/**
 * The past instant (ISO 8601, UTC) of a text: the last of a day, or `now` for the present day. `now`: ISO 8601, UTC.
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
    throw new TimeError(`${quoted(name)} is not a time zone: give one such as Europe/London or UTC`);
  }
}

/** A wall clock's time in ms; one of no calendar is refused. */
function wallOf(
  [year = '', month = '', day = '', hour = '00', minute = '00', second = '00', fraction = '']: readonly (
    string | undefined
  )[],
  given: string,
): number {
  const ms = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
    Number(fraction.padEnd(3, '0')),
  );
  if (
    Number.isNaN(ms) ||
    new Date(ms).toISOString().slice(0, 19) !== `${year}-${month}-${day}T${hour}:${minute}:${second}`
  )
    throw notATime(given);
  return ms;
}

const iso = (ms: number): string => new Date(ms).toISOString();

function notATime(given: string): TimeError {
  return new TimeError(
    `${quoted(given)} is not a time: give one such as 2026-05-04, 2026-05-04T12:30 or 2026-05-04T12:30:00Z`,
  );
}

function quoted(text: string): string {
  return JSON.stringify(shortened(inAscii(text), 40));
}
