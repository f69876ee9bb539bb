/**
 * Parses times given by callers and operators: RFC 3339 with its permitted variants (docs/api/conventions.md#times).
 */

const TIME =
  /^(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?([0-5]\d))?$/i;
/** The largest offset of any time zone from UTC, in minutes. */
const MOST_MINUTES = 14 * 60;

interface WrittenTime {
  /** The written local time as if it were UTC, milliseconds since the epoch. */
  readonly wall: number;
  /** Milliseconds by which the local time is ahead of UTC; `undefined`: the text has no zone. */
  readonly ahead: number | undefined;
}

/** Parses a time, with or without a zone; `undefined`: the text is no time, or its day does not exist. */
export function writtenTime(text: string): WrittenTime | undefined {
  const [, day = '', hour, minute, second = 0, fraction = '', utc, sign, hours, minutes] = TIME.exec(text) ?? [];
  const midnight = startOfDay(day);
  if (midnight === undefined) return undefined;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const wall = midnight + seconds * 1_000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
  if (utc !== undefined) return { wall, ahead: 0 };
  if (sign === undefined) return { wall, ahead: undefined };
  const ahead = Number(hours) * 60 + Number(minutes);
  return ahead > MOST_MINUTES ? undefined : { wall, ahead: (sign === '-' ? -ahead : ahead) * 60_000 };
}

/** Milliseconds since the epoch of a time with a zone; `undefined`: the text is no time, or has no zone. */
export function timeWithZone(text: string): number | undefined {
  const { wall = 0, ahead } = writtenTime(text) ?? {};
  return ahead === undefined ? undefined : wall - ahead;
}

/** Start in UTC of a day such as `2026-05-04`, milliseconds since the epoch; `undefined`: the text is no day. */
export function startOfDay(day: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // The 30th of February is read as the 2nd of March.
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day) ? midnight : undefined;
}
