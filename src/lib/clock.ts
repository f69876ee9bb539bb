/** The present as events and answers spell it, and how far it can be trusted. */

let lastMs = Number.NaN;
let lastTime = '';

/** Now, ISO 8601, UTC, milliseconds. Many callers share a millisecond: it is spelled once. */
export function currentTime(): string {
  const now = Date.now();
  if (now !== lastMs) {
    lastMs = now;
    lastTime = new Date(now).toISOString();
  }
  return lastTime;
}

/** How far the clocks of two processes may be apart, milliseconds. */
export const CLOCK_SLACK_MS = 5_000;
