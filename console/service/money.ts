/** What the pages about money show, and the commands that make the same from a terminal. */
import { signal } from '@preact/signals';
import type { TotalsCheck } from '../../src/ops/totals/checkTotals.js';
import type { SumName, Sums, TotalRow } from '../../src/ops/totals/totals.js';
import type { Chosen } from '../parts/filters.js';
import type { Query } from './call.js';

const DAY_MS = 86_400_000;
export const REPORT_ZONE = 'Europe/London';
const DAYS = 30;

/** Days of reports are those of the service's own time zone until another one is chosen. */
export function dayBefore(days: number): string {
  const today = new Intl.DateTimeFormat('en-CA', { timeZone: REPORT_ZONE }).format(Date.now());
  // Days of the calendar, of which some have 23 or 25 hours.
  return new Date(Date.parse(today) - days * DAY_MS).toISOString().slice(0, 10);
}

/** What was chosen last, also after a visit to another page. */
export const chosenTotals = signal<Chosen>({
  from: dayBefore(DAYS),
  to: dayBefore(0),
  time_zone: REPORT_ZONE,
  merchant: '',
  check: '',
});

export interface TotalsAnswer {
  readonly data: readonly TotalRow[];
  readonly sums: Sums;
  readonly check?: TotalsCheck;
}

export const SUMS: readonly (readonly [SumName, label: string])[] = [
  ['issued', 'Issued'],
  ['replaced', 'Issued in place of others'],
  ['redeemed', 'Redeemed'],
  ['unredeemed', 'Redemptions reversed'],
  ['unredeemed_by_support', 'Of these by support'],
  ['refunded', 'Refunded'],
  ['charged_back', 'Charged back'],
];

/** A `gift audit` command of the same choice. @param what such as `totals` */
export function auditCommand(what: string, query: Query, file: string): string {
  const options = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`--${name.replaceAll('_', '-')} ${quoted(String(value))}`],
  );
  return ['gift audit', what, ...options, '--csv >', quoted(`${file}.csv`)].join(' ');
}

const quoted = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export const redemptionsPath = (zone: string, day: string, merchant: string): string =>
  `/money/${[zone, day, merchant].map(encodeURIComponent).join('/')}`;
