/**
 * A simulated world: one virtual clock and one queue of entries for all processes and engines of a run. An entry is a
 * piece of work at a moment: a timer, a call's effect on an engine, a call's answer. Entries run one after the other,
 * and each ends before the next one starts. So a run depends on its seed only.
 */
import { createHash } from 'node:crypto';
import { enterWorld } from '../../../src/lib/world.js';
import { enterBuiltins } from './builtins.js';
import { type Chance, seededChance } from './chance.js';
import { entryQueue } from './entryQueue.js';
import { drawnFaults, type Faults } from './faults.js';
import { openMarks } from './marks.js';
import { openOutages } from './outages.js';
import { drained } from './outside.js';
import { neutralOwner } from './simulatedProcess.js';
import type { Actor, Simulation } from './simulation.js';

export interface SimulationOptions {
  readonly seed: number | string;
  /** The true time at the start, milliseconds since 1970. Default: drawn from the seed. */
  readonly startsAt?: number;
  /** Default: drawn from the seed. */
  readonly faults?: Faults;
  /** Called with each entry that runs, as a line. */
  readonly onEntry?: (line: string) => void;
}

/** An entry failed. The cause is the error, and the message names the seed and the latest entries. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
}

const MORNING = Date.UTC(2026, 0, 5, 8);
const MIDNIGHT = Date.UTC(2026, 0, 6);
/** Share of the seeds that begin so many virtual ms before midnight (UTC), when gifts and limits of a day end. */
const LATE = { share: 0.25, leastMs: 10_000, mostMs: 60_000 };
const LATEST = 40;
/** Virtual ms between two entries beyond which nothing happens. */
const MOST_BUSY_MS = 10_000;
/** Entries that are added to the hash together. */
const HASHED_AT_ONCE = 256;

function drawnStart(chance: Chance): number {
  if (!chance.happens(LATE.share)) return MORNING;
  return MIDNIGHT - LATE.leastMs - chance.integer(LATE.mostMs - LATE.leastMs);
}

export function openSimulation({ seed, onEntry, ...given }: SimulationOptions): Simulation {
  const chance = seededChance(seed);
  const startsAt = given.startsAt ?? drawnStart(chance.stream('start'));
  const queue = entryQueue();
  const hash = createHash('sha256');
  const unhashed: string[] = [];
  const update = (): void =>
    void hash.update(
      unhashed
        .splice(0)
        .map((line) => `${line}\n`)
        .join(''),
    );
  const latest: string[] = [];
  const state = { actor: undefined as Actor | undefined, ms: 0, busyMs: 0, numbers: 0, entries: 0 };
  const simulation: Simulation = {
    seed,
    chance,
    faults: given.faults ?? drawnFaults(chance.stream('faults')),
    marks: openMarks(),
    outages: openOutages(),
    get neutral() {
      return neutral;
    },
    actor: () => state.actor ?? neutral,
    ms: () => state.ms,
    busyMs: () => state.busyMs,
    now: () => startsAt + state.ms,
    schedule({ owner, inMs, kind, text, run }) {
      const at = state.ms + Math.max(0, inMs);
      const scheduled = { at, number: state.numbers++, owner, kind, text, run, cancelled: false };
      queue.put(scheduled);
      return scheduled;
    },
    again(entry) {
      if (!entry.cancelled) queue.put(Object.assign(entry, { at: state.ms, number: state.numbers++ }));
    },
    async run(untilMs, done = () => false) {
      await inSimulation(simulation, async (failure) => {
        for (;;) {
          if (done()) return;
          const entry = queue.take(untilMs);
          if (entry === undefined) {
            state.ms = Math.max(state.ms, Math.min(untilMs, Number.MAX_SAFE_INTEGER));
            return;
          }
          const passedMs = Math.max(0, entry.at - state.ms);
          if (passedMs < MOST_BUSY_MS) state.busyMs += passedMs;
          state.ms = Math.max(state.ms, entry.at);
          const owner = entry.owner as Actor;
          if (!owner.admits(entry)) continue;
          state.entries += 1;
          state.actor = owner;
          const line = `${state.ms.toFixed(3)} ${owner.name} ${entry.kind} ${entry.text}`;
          if (unhashed.push(line) === HASHED_AT_ONCE) update();
          if (latest.push(line) > LATEST) latest.shift();
          onEntry?.(line);
          enterWorld(owner.world);
          entry.run();
          await drained();
          failure();
        }
      });
    },
    entries: () => state.entries,
    hash() {
      update();
      return hash.copy().digest('hex');
    },
    latest: () => latest,
  };
  const neutral = neutralOwner(simulation);
  return simulation;
}

/** Does work in the simulation's world. Errors that nothing handles are failures of the simulation. */
async function inSimulation(simulation: Simulation, work: (failure: () => void) => Promise<void>): Promise<void> {
  let unhandled: { readonly error: unknown } | undefined;
  const note = (error: unknown): void => void (unhandled ??= { error });
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  const leaveBuiltins = enterBuiltins();
  const former = enterWorld(simulation.neutral.world);
  const failed = (error: unknown): SimulationError =>
    new SimulationError(
      `seed ${simulation.seed} failed at ${simulation.ms().toFixed(3)} ms: ${String(error)}\n${simulation
        .latest()
        .slice(-10)
        .join('\n')}`,
      { cause: error },
    );
  try {
    await work(() => {
      if (unhandled !== undefined) throw unhandled.error;
    });
  } catch (error) {
    throw failed(error);
  } finally {
    enterWorld(former);
    leaveBuiltins();
    process.off('unhandledRejection', note);
    process.off('uncaughtException', note);
  }
}

/**
 * Does work of an actor in a simulation, and runs entries until it has settled.
 * @param withinMs virtual milliseconds
 * @throws the work's error; SimulationError also when the work has not settled in time
 */
export async function perform<T>(
  simulation: Simulation,
  owner: Actor,
  text: string,
  work: () => Promise<T>,
  withinMs = 600_000,
): Promise<T> {
  let settled: { readonly value: T } | { readonly error: unknown } | undefined;
  simulation.schedule({
    owner,
    inMs: 0,
    kind: 'start',
    text,
    run() {
      work().then(
        (value) => (settled = { value }),
        (error: unknown) => (settled = { error }),
      );
    },
  });
  const until = simulation.ms() + withinMs;
  await simulation.run(until, () => settled !== undefined);
  if (settled === undefined)
    throw new SimulationError(`seed ${simulation.seed}: ${text} has not ended within ${withinMs} ms`);
  if ('error' in settled) throw settled.error;
  return settled.value;
}
