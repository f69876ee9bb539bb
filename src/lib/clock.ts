let lastMs = Number.NaN;
let lastTime = '';

/** ISO 8601, UTC, milliseconds. Formatted once a millisecond, for all its callers. */
export function currentTime(): string {
  const now = Date.now();
  if (now !== lastMs) {
    lastMs = now;
    lastTime = new Date(now).toISOString();
  }
  return lastTime;
}

/** Between two processes, milliseconds. */
export const CLOCK_SLACK_MS = 5_000;
