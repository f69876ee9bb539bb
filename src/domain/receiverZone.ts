/**
 * A receiver's time zones and local day, as far as their phone number and locale tell (docs/api/gifts.md#reminders).
 */
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** Zones where neither tells: numbers without a country count as British, too (docs/api/purchases.md#phone-numbers). */
const DEFAULT_ZONES = ['Europe/London'];
const DAY_MINUTES = 24 * 60;
const MINUTE_MS = 60_000;

/** Hours of a day, in minutes after midnight; `to` is excluded. */
export interface Hours {
  readonly from: number;
  readonly to: number;
}

export interface LocalDay {
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
  return /^[a-z]{2,3}(?:[-_][a-z]{4})?[-_]([a-z]{2})$/i.exec(locale ?? '')?.[1]?.toUpperCase();
}

function zonesIn(country: string | undefined): readonly string[] | undefined {
  if (country === undefined) return undefined;
  const locale = new Intl.Locale(`und-${country}`) as LocaleZones;
  const zones = locale.getTimeZones?.() ?? locale.timeZones ?? [];
  return zones.length === 0 ? undefined : zones;
}

/** TypeScript declares neither member yet. Node 20 has only the property, Node 26 only the method. */
interface LocaleZones {
  readonly timeZones?: readonly string[];
  getTimeZones?(): readonly string[] | undefined;
}

/** @returns the day, within these hours in each zone; `undefined`: it is too early or too late in one of them */
export function dayWithin(zones: readonly string[], { from, to }: Hours, now: string): LocalDay | undefined {
  const times = zones.map((zone) => localTime(zone, now)).sort((one, other) => one.ahead - other.ahead);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  // Where no time is within the hours of all zones of a country, only its middle zone counts.
  const checked = last.ahead - first.ahead < to - from ? times : [times[Math.floor(times.length / 2)] ?? first];
  if (!checked.every(({ minutes }) => minutes >= from && minutes < to)) return undefined;
  const latest = checked.at(-1) ?? first;
  const until = Math.floor(Date.parse(now) / MINUTE_MS) + to - latest.minutes;
  return { day: latest.day, until: new Date(until * MINUTE_MS).toISOString() };
}

interface LocalTime {
  readonly day: string;
  readonly minutes: number;
  /** Minutes by which the zone is ahead of UTC. */
  readonly ahead: number;
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
  const [day = '', time = ''] = formatOf(zone).format(Date.parse(now)).split(' ');
  const [hour = 0, minute = 0] = time.split(':').map(Number);
  const minutes = hour * 60 + minute;
  const days = Math.round((Date.parse(day) - Date.parse(now.slice(0, 10))) / (DAY_MINUTES * MINUTE_MS));
  const utc = Number(now.slice(11, 13)) * 60 + Number(now.slice(14, 16));
  return { day, minutes, ahead: days * DAY_MINUTES + minutes - utc };
}
