/** A process of a simulation: its clocks, its timers, its chance, and what can happen to it. */
import type { LoopDelay, Timer, World } from '../../../src/lib/world.js';
import type { Chance } from './chance.js';
import type { Entry } from './entryQueue.js';
import type { Actor, Simulation } from './simulation.js';

export interface SimulatedProcess extends Actor {
  /** False once the process has crashed or ended: nothing of it runs any more. */
  readonly alive: boolean;
  readonly frozen: boolean;
  /** Does work in the process, now. */
  start(text: string, work: () => void | Promise<void>): void;
  /** Ends the process at once: its timers never call, and it gets no answers. */
  crash(): void;
  /** Calls `ended` once, when the process crashes, unless the returned function is called before. */
  onEnd(ended: () => void): () => void;
  /** Stops the process for some time. Its timers and answers are stored until then, and run late. */
  freeze(ms: number): void;
  /** Lets a frozen process go on at once. */
  thaw(): void;
  /** Sets how many milliseconds the wall clock is ahead of the true time, so that it jumps. */
  setSkew(ms: number): void;
}

export interface ProcessOptions {
  /** Differs for each start of a process, such as `api-2.3`: the third start of the second one. */
  readonly name: string;
  /** Milliseconds that the wall clock is ahead at the start. */
  readonly skewMs?: number;
}

/** Greatest delay of a timer; Node takes a longer one for 1 ms. */
const MAX_DELAY = 2 ** 31 - 1;
/** Virtual time of a turn of the event loop, ms. Without it a loop that waits for a time would never end. */
const TURN_MS = 0.01;

/** Work takes no virtual time, so an event loop is never late. */
const NO_DELAY: LoopDelay = {
  enable: () => true,
  disable: () => true,
  reset: () => undefined,
  percentile: () => 0,
};

class SimulatedTimer implements Timer {
  entry: Entry | undefined;
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

/** The actor of what belongs to no process. */
export function neutralOwner(simulation: Simulation): Actor {
  const chance = simulation.chance.stream('neutral');
  const owner: Actor = {
    name: '-',
    salt: chance.integer(2 ** 32),
    admits: () => true,
    get world() {
      return world;
    },
  };
  const world = worldOf(simulation, owner, chance, { skewMs: 0, startedAt: 0 });
  return owner;
}

export function startProcess(simulation: Simulation, { name, skewMs = 0 }: ProcessOptions): SimulatedProcess {
  const chance = simulation.chance.stream(`process ${name}`);
  const clock = { skewMs, startedAt: simulation.ms() };
  const state = { alive: true, frozen: false };
  const stored: Entry[] = [];
  const endings = new Set<() => void>();
  const process: SimulatedProcess = {
    name,
    salt: chance.integer(2 ** 32),
    get world() {
      return world;
    },
    get alive() {
      return state.alive;
    },
    get frozen() {
      return state.frozen;
    },
    admits(entry) {
      if (state.alive && state.frozen) stored.push(entry);
      return state.alive && !state.frozen;
    },
    start(text, work) {
      simulation.schedule({
        owner: process,
        inMs: 0,
        kind: 'start',
        text,
        // A rejection that nothing handles ends the simulation, as it would end the process.
        run: () => void work(),
      });
    },
    crash() {
      if (!state.alive) return;
      state.alive = false;
      stored.length = 0;
      for (const ended of endings) {
        endings.delete(ended);
        ended();
      }
    },
    onEnd(ended) {
      endings.add(ended);
      return () => void endings.delete(ended);
    },
    freeze(ms) {
      if (state.frozen) return;
      state.frozen = true;
      simulation.schedule({ owner: simulation.neutral, inMs: ms, kind: 'thaw', text: name, run: process.thaw });
    },
    thaw() {
      state.frozen = false;
      for (const entry of stored.splice(0)) simulation.again(entry);
    },
    setSkew(ms) {
      clock.skewMs = ms;
    },
  };
  const world = worldOf(simulation, process, chance.stream('world'), clock);
  return process;
}

function worldOf(
  simulation: Simulation,
  owner: Actor,
  chance: Chance,
  clock: { skewMs: number; readonly startedAt: number },
): World {
  const wait = (timer: SimulatedTimer, inMs: number, kind: string, run: () => void): void => {
    timer.entry = simulation.schedule({ owner, inMs, kind, text: String(inMs), run });
  };
  return {
    now: () => Math.floor(simulation.now() + clock.skewMs),
    ticks: () => simulation.ms() - clock.startedAt,
    ticksOrigin: simulation.now() - simulation.ms() + clock.startedAt,
    loopDelay: () => NO_DELAY,
    after(ms, run) {
      const timer = new SimulatedTimer();
      wait(timer, delayOf(ms), 'timer', run);
      return timer;
    },
    every(ms, run) {
      const timer = new SimulatedTimer();
      const next = (): void =>
        wait(timer, delayOf(ms), 'timer', () => {
          next();
          run();
        });
      next();
      return timer;
    },
    soon: (run) => wait(new SimulatedTimer(), TURN_MS, 'soon', run),
    end(timer) {
      const entry = (timer as SimulatedTimer | undefined)?.entry;
      if (entry !== undefined) entry.cancelled = true;
    },
    randomBytes: chance.bytes,
    random: chance.random,
    randomInt: chance.integer,
    uuid: chance.uuid,
  };
}

/** The delay as Node takes it. */
function delayOf(ms: number): number {
  return ms >= 1 && ms <= MAX_DELAY ? Math.trunc(ms) : 1;
}
