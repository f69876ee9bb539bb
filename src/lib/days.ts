const DAY_MS = 86_400_000;

/** The calendar day (UTC) that is `days` days after a time or day. @param time ISO 8601 */
export function daysAfter(time: string, days: number): string {
  return new Date(Date.parse(time) + days * DAY_MS).toISOString().slice(0, 10);
}
