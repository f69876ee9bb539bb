let lastMs = Number.NaN;
let lastTime = '';

/** ISO 8601, UTC, milliseconds. Formatted once per millisecond. */
export function currentTime(): string {
  const now = Date.now();
  if (now !== lastMs) {
    lastMs = now;
    lastTime = new Date(now).toISOString();
  }
  return lastTime;
}

/** The most that two processes' clocks may differ, ms. */
export const CLOCK_SLACK_MS = 5_000;
