/**
 * The clock of all business decisions. A sandbox moves it ahead (docs/api/sandbox.md#the-clock). Technical times
 * (leases, deadlines, presence, log lines) are those of the system's clock instead.
 */
import { after, endTimer, perWorld, systemMs, ticks, type Timer } from './world.js';

interface Clock {
  /** Milliseconds by which this clock is ahead of the system's clock; 0 unless this is a sandbox. */
  offsetMs: number;
  /** Called when the clock was moved. */
  readonly moved: Set<() => void>;
}

const clock = perWorld((): Clock => ({ offsetMs: 0, moved: new Set() }));

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

/** The time by this clock, milliseconds since the epoch. */
export const clockMs = (): number => systemMs() + clock().offsetMs;

/** The time by this clock: ISO 8601, UTC, milliseconds. Formatted once per millisecond. */
export const currentTime = formatted(clockMs);

/** The system's clock: ISO 8601, UTC, milliseconds. */
export const systemTime = formatted(systemMs);

/** Milliseconds of a monotonic clock that jumps ahead together with a sandbox's clock. */
export const clockTicks = (): number => ticks() + clock().offsetMs;

export const clockOffset = (): number => clock().offsetMs;

/** Moves the clock ahead and ends the waits that are over by the new time. A lower or equal offset changes nothing. */
export function moveClock(toOffsetMs: number): void {
  const present = clock();
  if (toOffsetMs <= present.offsetMs) return;
  present.offsetMs = toOffsetMs;
  for (const notify of present.moved) notify();
}

/** Sets the clock back to the system's, for a service that starts again: no wait of `afterTicks` may be pending. */
export function resetClock(): void {
  clock().offsetMs = 0;
}

/** Calls `then` once, when `ms` have passed by the clock. @returns a function that ends the wait */
export function afterTicks(ms: number, then: () => void): () => void {
  const due = clockTicks() + ms;
  const { moved } = clock();
  let timer: Timer;
  const end = (): void => {
    endTimer(timer);
    moved.delete(notify);
  };
  const wait = (leftMs: number): void => {
    timer = after(leftMs, () => {
      end();
      then();
    });
  };
  const notify = (): void => {
    endTimer(timer);
    wait(Math.max(0, due - clockTicks()));
  };
  moved.add(notify);
  wait(ms);
  return end;
}

/** Milliseconds by which the clocks of two processes may differ at most. */
export const CLOCK_SLACK_MS = 5_000;
