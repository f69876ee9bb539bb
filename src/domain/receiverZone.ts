/**
 * A receiver's time zones and local day, as far as their phone number and locale tell (docs/api/gifts.md#reminders).
 */
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** Zones where neither tells: numbers without a country count as British, too (docs/api/purchases.md#phone-numbers). */
const DEFAULT_ZONES = ['Europe/London'];
const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;

/** Hours of a day, in minutes after midnight; `to` is excluded. */
export interface Hours {
  readonly from: number;
  readonly to: number;
}

interface LocalDay {
  readonly day: string;
  /** Time at which the hours end in the first zone to reach their end (ISO 8601, UTC). */
  readonly until: string;
}

/** All time zones in which the receiver may be. */
export function zonesOf({
  phone_number,
  locale,
}: {
  readonly phone_number: string | null;
  readonly locale: string | null;
}): readonly string[] {
  const country = phone_number === null ? undefined : parsePhoneNumberFromString(phone_number)?.country;
  return zonesIn(country ?? (phone_number === null ? regionOf(locale) : undefined)) ?? DEFAULT_ZONES;
}

/** Region of a locale such as `en-GB` or `en_GB`. */
function regionOf(locale: string | null): string | undefined {
  return /^[a-z]{2,3}(?:[-_][a-z]{4})?[-_]([a-z]{2})$/i.exec(locale ?? '')?.[1];
}

function zonesIn(country: string | undefined): readonly string[] | undefined {
  if (country === undefined) return undefined;
  const locale = new Intl.Locale(`und-${country}`) as LocaleZones;
  const zones = locale.getTimeZones?.() ?? locale.timeZones;
  return zones?.length === 0 ? undefined : zones;
}

/** TypeScript declares neither member yet. Node 20 has only the property, Node 26 only the method. */
interface LocaleZones {
  readonly timeZones?: readonly string[];
  getTimeZones?(): readonly string[] | undefined;
}

/** @returns the day, within these hours in each zone; `undefined`: it is too early or too late in one of them */
export function dayWithin(zones: readonly string[], { from, to }: Hours, now: string): LocalDay | undefined {
  const times = zones.map((zone) => localTime(zone, now)).sort((one, other) => one.clock - other.clock);
  const clocks = times.map(({ clock }) => clock);
  // Where no time is within the hours of all zones of a country, only its middle zone counts.
  const middle = Math.floor(times.length / 2);
  const checked = Math.max(...clocks) - Math.min(...clocks) < to - from ? times : times.slice(middle, middle + 1);
  const latest = checked.at(-1);
  if (latest === undefined || !checked.every(({ minutes }) => minutes >= from && minutes < to)) return undefined;
  // With long hours it may be the evening in one zone and the next morning in another: the evening ends first.
  const left = to - Math.max(...checked.map(({ minutes }) => minutes));
  const until = Math.floor(Date.parse(now) / MINUTE_MS) + left;
  return { day: latest.day, until: new Date(until * MINUTE_MS).toISOString() };
}

interface LocalTime {
  readonly day: string;
  /** Minutes since midnight. */
  readonly minutes: number;
  /** Minutes since 1970 that the clocks of the zone show. */
  readonly clock: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  formats.set(timeZone, made);
  return made;
}

function localTime(zone: string, now: string): LocalTime {
  // The formatted time is like `2027-03-01 09:00`.
  const text = formatOf(zone).format(Date.parse(now));
  const clock = Date.parse(`${text}Z`) / MINUTE_MS;
  return { day: text.slice(0, 10), minutes: clock % DAY_MINUTES, clock };
}
