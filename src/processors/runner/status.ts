/** The state of this process's process managers, for metrics. */
import type { Position } from '../../ports/eventStore.js';

export interface StepStatus {
  /** Running, or waiting for the next attempt. */
  readonly inFlight: number;
  /** Failed attempts since the process started. */
  readonly failed: number;
  /** Parked since the process started. */
  readonly parked: number;
}

export interface ProcessStatus {
  /** Whether this process does the work; the others stand by. */
  readonly leading: boolean;
  /** Whether everything before its lead has been folded: from then on it acts. */
  readonly caughtUp: boolean;
  /** How far the log has been read; `undefined`: not at all, or another process leads. */
  readonly position: Position | undefined;
  /** Open instances. */
  readonly open: number;
  /** When the oldest was opened: ISO 8601. */
  readonly oldestAt: string | undefined;
  /** By step, as the process managers name them. */
  readonly steps: ReadonlyMap<string, StepStatus>;
}

export interface ProcessTally {
  /** A session has started; `look` tells what is open. */
  started(look: () => Pick<ProcessStatus, 'caughtUp' | 'position' | 'open' | 'oldestAt'>): void;
  /** It has ended: another process has its work now. */
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
  let look: Parameters<ProcessTally['started']>[0] | undefined;
  const of = (step: string): { inFlight: number; failed: number; parked: number } => {
    const known = steps.get(step) ?? { inFlight: 0, failed: 0, parked: 0 };
    steps.set(step, known);
    return known;
  };
  return {
    started(asked) {
      look = asked;
    },
    ended() {
      look = undefined;
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
    status: () => ({ leading: look !== undefined, ...(look?.() ?? IDLE), steps }),
  };
}
