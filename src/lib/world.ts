/**
 * Time and chance: all that varies between two runs of the same work. Code of `src` takes both from here, so that a
 * simulation can put a world of its own in the place of the real one (docs/simulation.md).
 */
import * as crypto from 'node:crypto';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** A pending call. `unref`: it does not keep the process alive; `ref` takes that back. */
export interface Timer {
  ref(): this;
  unref(): this;
}

/** Measures how late the event loop is, from `enable` to `disable`. */
export interface LoopDelay {
  enable(): unknown;
  disable(): unknown;
  /** Forgets all delays so far. */
  reset(): void;
  /** Nanoseconds. */
  percentile(percentile: number): number;
}

export interface World {
  /** The wall clock, milliseconds since 1970, UTC. */
  now(): number;
  /** Milliseconds by a clock that never goes back. Its zero is the start of the thread. */
  ticks(): number;
  /** Time of the zero of `ticks`, milliseconds since 1970. Their sum is the same in all threads. */
  readonly ticksOrigin: number;
  /** Calls `run` once, in `ms` milliseconds. */
  after(ms: number, run: () => void): Timer;
  /** Calls `run` every `ms` milliseconds. */
  every(ms: number, run: () => void): Timer;
  /** Calls `run` at the end of this turn of the event loop. */
  soon(run: () => void): void;
  /** Ends a timer of `after` or `every`; one that has ended stays so. */
  end(timer: Timer | undefined): void;
  /** @param resolution milliseconds between two samples; they are part of each delay */
  loopDelay(resolution: number): LoopDelay;
  randomBytes(size: number): Buffer;
  /** A number from 0 to below 1. Not for secrets. */
  random(): number;
  /** An unpredictable integer from 0 to below `end`. */
  randomInt(end: number): number;
  /** A UUID of version 4. */
  uuid(): string;
}

export const REAL_WORLD: World = {
  now: () => Date.now(),
  ticks: () => performance.now(),
  ticksOrigin: performance.timeOrigin,
  after: (ms, run) => setTimeout(run, ms),
  every: (ms, run) => setInterval(run, ms),
  soon: (run) => void setImmediate(run),
  end: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  loopDelay: (resolution) => monitorEventLoopDelay({ resolution }),
  randomBytes: (size) => crypto.randomBytes(size),
  random: () => Math.random(),
  randomInt: (end) => crypto.randomInt(end),
  uuid: () => crypto.randomUUID(),
};

let world = REAL_WORLD;

/** Puts another world in the place of the present one, for this thread. @returns the former one */
export function enterWorld(other: World): World {
  const former = world;
  world = other;
  return former;
}

/**
 * State of a module that belongs to a process. Each world has its own, so that processes of a simulation share nothing.
 */
export function perWorld<T>(make: () => T): () => T {
  const states = new WeakMap<World, { readonly state: T }>();
  let latest: { readonly world: World; readonly state: T } | undefined;
  return () => {
    if (latest?.world === world) return latest.state;
    const { state } = states.get(world) ?? { state: make() };
    states.set(world, { state });
    latest = { world, state };
    return state;
  };
}

export const systemMs = (): number => world.now();
export const ticks = (): number => world.ticks();
/** As `ticks`, with the same zero in all threads. */
export const sharedTicks = (): number => world.ticksOrigin + world.ticks();
export const after = (ms: number, run: () => void): Timer => world.after(ms, run);
export const every = (ms: number, run: () => void): Timer => world.every(ms, run);
export const soon = (run: () => void): void => world.soon(run);
export const endTimer = (timer: Timer | undefined): void => world.end(timer);
export const loopDelay = (resolution: number): LoopDelay => world.loopDelay(resolution);
export const randomBytes = (size: number): Buffer => world.randomBytes(size);
/** A number from 0 to below 1. Not for secrets. */
export const randomFraction = (): number => world.random();
export const randomInt = (end: number): number => world.randomInt(end);
export const randomUUID = (): string => world.uuid();

/** Resolves in `ms` milliseconds. @throws the reason of `signal`, as soon as it is aborted */
export async function sleep(ms: number, { signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    const abort = (): void => {
      endTimer(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise(soon);

/** A signal that is aborted in `ms` milliseconds, with a `TimeoutError`. Keeps no process alive. */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  after(ms, () =>
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
  ).unref();
  return controller.signal;
}
