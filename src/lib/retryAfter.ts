/** `Retry-After` (RFC 9110, 10.2.3): seconds, or a date in one of its three forms (5.6.7). */
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = String.raw`\d\d:\d\d:\d\d`;

/** The forms of a date in the header. JavaScript accepts many other texts as dates: `-5` is a day in May. */
const HTTP_DATE = new RegExp(
  String.raw`^(?:${DAY}, \d\d ${MONTH} \d{4} ${TIME} GMT|${DAY}[a-z]*, \d\d-${MONTH}-\d\d ${TIME} GMT|${DAY} ${MONTH} [ \d]\d ${TIME} \d{4})$`,
);

/** Longest wait, milliseconds: a wrong header, or a server's clock that is ahead, must not stop all calls for long. */
const MOST_MS = 3_600_000;

/** @returns milliseconds to wait, at most `mostMs`; `undefined` for an absent and for a malformed header */
export function retryAfterMs(header: string | null | undefined, now: number, mostMs = MOST_MS): number | undefined {
  const value = header?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(mostMs, Number(value) * 1_000);
  const date = HTTP_DATE.test(value) ? Date.parse(value.endsWith(' GMT') ? value : `${value} GMT`) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.min(mostMs, Math.max(0, date - now));
}
