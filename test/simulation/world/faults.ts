/**
 * Faults by chance. A seed first draws which faults are on in its run, and how often each happens (swarm testing: runs
 * with few kinds of faults reach states that a run with all of them never does).
 */
import type { Chance } from './chance.js';

export interface Faults {
  /** Whether the fault called `name` happens now. */
  happens(name: string): boolean;
  /** The probability of a fault in this run; 0: it is off. */
  rate(name: string): number;
  /** Ends all faults for good, so that the service can recover. */
  stop(): void;
  /** How often each fault has happened, by name. */
  counts(): ReadonlyMap<string, number>;
}

/** Share of all faults that are on in one run. */
const SHARE_ON = 0.4;
/** Least and greatest probability of a fault that is on. */
const RATES = { least: 0.000_1, most: 0.01 };

/** Faults that end a process are rarer: one that is always about to start does nothing else. */
const ENDS_PROCESS = { name: /loses its caller$|^a process (crashes|is stopped)$/, share: 0.1 };

/** No fault ever happens. */
export function noFaults(): Faults {
  return { happens: () => false, rate: () => 0, stop: () => undefined, counts: () => new Map() };
}

/** @param always rates of faults that are given instead of drawn, for tests */
export function drawnFaults(chance: Chance, always: Readonly<Record<string, number>> = {}): Faults {
  const rates = new Map(Object.entries(always));
  const counts = new Map<string, number>();
  const draws = new Map<string, Chance>();
  let stopped = false;

  function rate(name: string): number {
    if (stopped) return 0;
    const share = ENDS_PROCESS.name.test(name) ? ENDS_PROCESS.share : 1;
    const known = rates.get(name) ?? share * drawnRate(chance.stream(`rate of ${name}`));
    rates.set(name, known);
    return known;
  }

  return {
    rate,
    happens(name) {
      const drawn = draws.get(name) ?? chance.stream(name);
      draws.set(name, drawn);
      if (!drawn.happens(rate(name))) return false;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return true;
    },
    stop() {
      stopped = true;
    },
    counts: () => new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
}

/** Rates are spread evenly over their orders of magnitude. */
function drawnRate(chance: Chance): number {
  if (!chance.happens(SHARE_ON)) return 0;
  return RATES.least * (RATES.most / RATES.least) ** chance.random();
}
