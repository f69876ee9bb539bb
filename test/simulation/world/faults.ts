/**
 * Faults by chance. A seed first draws which faults are on in its run, and how often each happens (swarm testing: runs
 * with few kinds of faults reach states that a run with all of them never does).
 */
import type { Chance } from './chance.js';

export interface Faults {
  /** Whether the fault called `name` happens now, to this call: one that the run is about fails more often. */
  happens(name: string, call?: string): boolean;
  /**
   * Lets the fault happen to the next call like this. What needs one fault at one moment would else need a thousand
   * runs.
   */
  aim(name: string, call: RegExp): void;
  /** The probability of a fault in this run; 0: it is off. */
  rate(name: string): number;
  /** Ends all faults for good, so that the service can recover. */
  stop(): void;
  /** How often each fault has happened, by name. */
  counts(): ReadonlyMap<string, number>;
}

interface DrawnFault {
  readonly rate: number;
  readonly chance: Chance;
  /** How often it has happened. */
  count: number;
}

interface Aim {
  readonly name: string;
  readonly call: RegExp;
}

/** Share of all faults that are on in one run. */
const SHARE_ON = 0.4;
/** Least and greatest probability of a fault that is on. */
const RATES = { least: 0.000_1, most: 0.01 };

/** Faults that are rarer or more frequent than others: the probability is multiplied by `times`. */
const TIMES = [
  // Faults that end a process, or leave it without an engine: one that is always about to start does nothing else.
  { name: /loses its caller$|goes away after a write$|fills its disk$|^a process (crashes|is stopped)$/, times: 0.1 },
  // Few files are written.
  { name: /^disk /, times: 10 },
];

/**
 * What some runs are about: faults of calls like these are so many times as probable. What follows on two rare faults of
 * one kind of call is then no rarer than one of them.
 */
const FOCUS = { share: 0.4, times: 30, most: 0.3 };
const FOCI: readonly RegExp[] = [
  / (get|put) idempotency:/,
  / append gift-/,
  / append transaction-/,
  / (get|put) (charge|refund)\//,
  / put lease\//,
];

/** In some runs the read store is slow to write: read models are behind the log for most of the time. */
const LAGGING = { share: 0.12, name: 'documents is slow', call: /^documents write /, rate: 0.4 };

/** No fault ever happens. */
export function noFaults(): Faults {
  return {
    happens: () => false,
    aim: () => undefined,
    rate: () => 0,
    stop: () => undefined,
    counts: () => new Map(),
  };
}

/** @param always rates of faults that are given instead of drawn, for tests */
export function drawnFaults(chance: Chance, always: Readonly<Record<string, number>> = {}): Faults {
  const drawn = new Map<string, DrawnFault>();
  const focus = drawnFocus(chance.stream('focus'));
  const isLagging = chance.stream('lagging').happens(LAGGING.share);
  const aims = new Set<Aim>();
  let stopped = false;

  /** Whether somebody has aimed the fault at this call. */
  function isAimed(name: string, call: string): boolean {
    for (const aim of aims) if (aim.name === name && aim.call.test(call)) return aims.delete(aim);
    return false;
  }

  function faultOf(name: string): DrawnFault {
    const known = drawn.get(name);
    if (known !== undefined) return known;
    const times = TIMES.find((one) => one.name.test(name))?.times ?? 1;
    const rate = always[name] ?? times * drawnRate(chance.stream(`rate of ${name}`));
    const fault = { rate, chance: chance.stream(name), count: 0 };
    drawn.set(name, fault);
    return fault;
  }

  function rateOf({ rate }: DrawnFault, name: string, call: string): number {
    if (isLagging && name === LAGGING.name && LAGGING.call.test(call)) return LAGGING.rate;
    return focus?.test(call) === true ? Math.min(FOCUS.most, FOCUS.times * rate) : rate;
  }

  return {
    rate: (name) => (stopped ? 0 : faultOf(name).rate),
    happens(name, call = '') {
      if (stopped) return false;
      const fault = faultOf(name);
      if (!isAimed(name, call) && !fault.chance.happens(rateOf(fault, name, call))) return false;
      fault.count += 1;
      return true;
    },
    aim: (name, call) => void aims.add({ name, call }),
    stop() {
      stopped = true;
    },
    counts() {
      const happened = [...drawn].filter(([, { count }]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1));
      return new Map(happened.map(([name, { count }]) => [name, count]));
    },
  };
}

const drawnFocus = (chance: Chance): RegExp | undefined =>
  chance.happens(FOCUS.share) ? chance.pick(FOCI) : undefined;

/** Rates are spread evenly over their orders of magnitude. */
function drawnRate(chance: Chance): number {
  if (!chance.happens(SHARE_ON)) return 0;
  return chance.spread(RATES.least, RATES.most);
}
