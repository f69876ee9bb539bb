/**
 * The time of everything that the business decides. A sandbox moves it ahead (docs/sandbox.md#the-clock). What concerns
 * machines (leases, deadlines, presence, log lines) goes by the system's clock instead.
 */

/** Ahead of the system's clock, milliseconds; 0 unless this is a sandbox. */
let offsetMs = 0;
const moved = new Set<() => void>();

function formatted(now: () => number): () => string {
  let lastMs = Number.NaN;
  let lastTime = '';
  return () => {
    const ms = now();
    if (ms !== lastMs) {
      lastMs = ms;
      lastTime = new Date(ms).toISOString();
    }
    return lastTime;
  };
}

/** Milliseconds since the epoch. */
export const clockMs = (): number => Date.now() + offsetMs;

/** ISO 8601, UTC, milliseconds. Formatted once per millisecond. */
export const currentTime = formatted(clockMs);

/** The system's clock: ISO 8601, UTC, milliseconds. */
export const systemTime = formatted(() => Date.now());

/** Milliseconds of a clock that is never set back, and goes ahead where a sandbox's does. */
export const clockTicks = (): number => performance.now() + offsetMs;

export const clockOffset = (): number => offsetMs;

/** Ends the waits that are over by the new time. An offset that is not ahead of the present one changes nothing. */
export function moveClock(toOffsetMs: number): void {
  if (toOffsetMs <= offsetMs) return;
  offsetMs = toOffsetMs;
  for (const look of moved) look();
}

/** Puts the clock back to the system's, for a service that starts anew: nothing may wait by it meanwhile. */
export function resetClock(): void {
  offsetMs = 0;
}

/** Calls `then` once, when `ms` have passed by the clock. @returns ends the wait */
export function afterTicks(ms: number, then: () => void): () => void {
  const due = clockTicks() + ms;
  let timer: NodeJS.Timeout;
  const end = (): void => {
    clearTimeout(timer);
    moved.delete(look);
  };
  const wait = (leftMs: number): void => {
    timer = setTimeout(() => {
      end();
      then();
    }, leftMs);
  };
  const look = (): void => {
    clearTimeout(timer);
    wait(Math.max(0, due - clockTicks()));
  };
  moved.add(look);
  wait(ms);
  return end;
}

/** The most that two processes' clocks may differ, ms. */
export const CLOCK_SLACK_MS = 5_000;
