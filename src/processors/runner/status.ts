import type { Position } from '../../ports/eventStore.js';

export interface StepStatus {
  /** Jobs that run, or wait for the next attempt. */
  readonly inFlight: number;
  /** Failed attempts since the process started. */
  readonly failed: number;
  /** Jobs parked since the process started. */
  readonly parked: number;
}

export interface ProcessStatus {
  /** Whether this process holds the lease. */
  readonly leading: boolean;
  /** Whether the feed has been folded up to the session's start: the session acts only after that. */
  readonly caughtUp: boolean;
  /** Position up to which the feed is folded; `undefined`: nothing was read, or another process holds the lease. */
  readonly position: Position | undefined;
  readonly open: number;
  /** Time of the event that opened the oldest open instance that no limit of our own holds back: ISO 8601. */
  readonly oldestAt: string | undefined;
  readonly steps: ReadonlyMap<string, StepStatus>;
}

export interface ProcessTally {
  /** A session has started. `read` returns the state of its open work. */
  started(read: () => Pick<ProcessStatus, 'caughtUp' | 'position' | 'open' | 'oldestAt'>): void;
  ended(): void;
  takenOn(step: string): void;
  done(step: string): void;
  failed(step: string): void;
  parked(step: string): void;
  status(): ProcessStatus;
}

const IDLE = { caughtUp: false, position: undefined, open: 0, oldestAt: undefined };

export function processTally(): ProcessTally {
  const steps = new Map<string, { inFlight: number; failed: number; parked: number }>();
  let read: Parameters<ProcessTally['started']>[0] | undefined;
  const of = (step: string): { inFlight: number; failed: number; parked: number } => {
    const known = steps.get(step) ?? { inFlight: 0, failed: 0, parked: 0 };
    steps.set(step, known);
    return known;
  };
  return {
    started(reader) {
      read = reader;
    },
    ended() {
      read = undefined;
      for (const step of steps.values()) step.inFlight = 0;
    },
    takenOn(step) {
      of(step).inFlight += 1;
    },
    done(step) {
      of(step).inFlight -= 1;
    },
    failed(step) {
      of(step).failed += 1;
    },
    parked(step) {
      of(step).parked += 1;
    },
    status: () => ({ leading: read !== undefined, ...(read?.() ?? IDLE), steps }),
  };
}
