/** Times as callers and operators write them: RFC 3339, with what its notes leave open (docs/decisions.md#times). */

const TIME =
  /^(\d{4}-\d\d-\d\d)[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?([0-5]\d))?$/i;
/** Of all zones that there are. */
const MOST_MINUTES = 14 * 60;

export interface WrittenTime {
  /** The clock that was read, as if it were UTC, ms. */
  readonly wall: number;
  /** How far that clock is ahead of UTC, ms; `undefined`: not said. */
  readonly ahead: number | undefined;
}

/** `undefined`: not a time, or one of a day that there is not. */
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

/** Milliseconds since the epoch; `undefined`: not a time, or one without a zone. */
export function timeWithZone(text: string): number | undefined {
  const { wall = 0, ahead } = writtenTime(text) ?? {};
  return ahead === undefined ? undefined : wall - ahead;
}

/** Of `2026-05-04`, in UTC, ms; `undefined`: not a day. */
export function startOfDay(day: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // The 30th of February is read as the 2nd of March.
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day) ? midnight : undefined;
}
