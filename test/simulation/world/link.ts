/**
 * The way of one process to one engine. In a simulation each call is two entries: its effect on the engine, and its
 * answer to the process. Faults happen before, between and after them.
 */
import { nextTurn, soon } from '../../../src/lib/world.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Chance } from './chance.js';
import type { SimulatedProcess } from './simulatedProcess.js';
import type { Simulation } from './simulation.js';

export interface Call<T> {
  /** The call's method and object, such as `append gift-1`: the same in each run of a seed. */
  readonly text: string;
  /** Does the call on the engine's disk. Its error is the call's outcome. */
  readonly effect: () => T;
  /** The call only reads: that it may have been carried out says nothing. */
  readonly reads?: true;
  /** A second effect changes nothing, so the network may deliver the call twice. */
  readonly repeatable?: true;
}

export interface Link {
  /** @throws the effect's error; UnavailableError, with `outcomeUnknown` where the effect may have happened or may yet */
  call<T>(call: Call<T>): Promise<T>;
  /** Sends something to the engine, without an answer: later, after everything sent before. */
  send(text: string, run: () => void): void;
  /** As `send`, from the engine to the process; a process that has ended gets nothing. */
  deliver(text: string, run: () => void): void;
  /** Whether the process can still be reached: false once it has crashed. */
  connected(): boolean;
  /** Calls `lost` some time after the process has crashed: the engine then learns of it. */
  onLost(lost: () => void): void;
  /** Whether a fault of the engine's own happens now. */
  happens(fault: string): boolean;
}

/** Calls are carried out at once, and answered in the next turn: for tests in the real world. */
export const IMMEDIATE: Link = {
  async call({ effect }) {
    const outcome = outcomeOf(effect);
    await nextTurn();
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  },
  send: (_text, run) => soon(run),
  deliver: (_text, run) => soon(run),
  connected: () => true,
  onLost: () => undefined,
  happens: () => false,
};

/** Virtual ms that one way takes, mostly. */
const WAY = { least: 0.1, most: 1.5 };
const SLOW = { least: 5, most: 4_000 };
/** Virtual ms after which an answer is late: the service goes on without it where it may. */
const LATE_ANSWER_MS = 300;
/** Virtual ms for which an engine is away that goes away after a write: its readers have not seen the write yet. */
const AWAY = { least: 100, most: 10_000 };
/** Virtual ms after which a caller takes an answer for lost. */
const DEADLINE = { least: 3_000, most: 10_000 };
/** The fault that an engine gets a request whose caller no longer waits. */
export const LATE_CALL = 'carries out an abandoned call';
/** Virtual ms after which such a request arrives. */
export const LATE = { least: 10_000, most: 40_000 };
/** The engines that store something. */
const DISKS: ReadonlySet<string> = new Set(['events', 'documents', 'keys']);
/** The fault that an engine has no room left for what it gets. */
const FILLS_DISK = 'fills its disk';
/** Virtual ms until there is room again. */
const FULL = { least: 100, most: 30_000 };
/** Virtual ms after which an engine learns that a process has crashed. */
const LOST = { least: 1, most: 5_000 };

export function linkTo(engine: string, process: SimulatedProcess, simulation: Simulation): Link {
  const chance = simulation.chance.stream(`link of ${process.name} to ${engine}`);
  const happens = (fault: string): boolean => simulation.faults.happens(`${engine} ${fault}`);
  const isAway = (): boolean => simulation.outages.isAway(engine, process.name, simulation.ms());
  /** @param call absent: of what has no answer */
  const wayMs = (call?: string): number =>
    within(chance, simulation.faults.happens(`${engine} is slow`, call) ? SLOW : WAY);
  /** One direction of a connection: nothing overtakes what was sent before. */
  function inOrder(schedule: (text: string, inMs: number, run: () => void) => void): Link['send'] {
    let last = 0;
    return (text, run) => {
      last = Math.max(last, simulation.ms() + wayMs());
      schedule(text, last - simulation.ms(), run);
    };
  }

  const unavailable = (cause: string, outcomeUnknown: boolean): UnavailableError =>
    new UnavailableError(`${engine} ${cause}`, { outcomeUnknown });

  /** Does a write, unless the engine's disk is full: as a full SQLite does, it refuses all writes and answers reads. */
  function stored<T>(effect: () => T): T {
    if (!DISKS.has(engine)) return effect();
    const disk = `disk of ${engine}`;
    if (happens(FILLS_DISK)) simulation.outages.begin(disk, simulation.ms() + chance.spread(FULL.least, FULL.most));
    if (!simulation.outages.isAway(disk, '', simulation.ms())) return effect();
    simulation.marks.sometimes(`${engine}: a full disk refuses a write`);
    throw new UnavailableError(`${engine}: database or disk is full`, { publicReason: 'its disk is full' });
  }

  return {
    async call<T>({ text, effect, reads, repeatable }: Call<T>): Promise<T> {
      const called = `${engine} ${text}`;
      const fails = (fault: string): boolean => simulation.faults.happens(`${engine} ${fault}`, called);
      return new Promise<T>((resolve, reject) => {
        const begun = simulation.ms();
        const answer = (inMs: number, settle: () => void): void =>
          void simulation.schedule({ owner: process, inMs, kind: 'answer', text: called, run: settle });
        const carryOut = (inMs: number, then: (outcome: Outcome<T>) => void): void =>
          void simulation.schedule({
            owner: simulation.neutral,
            inMs,
            kind: 'effect',
            text: called,
            run: () => then(outcomeOf(() => (reads === true ? effect() : stored(effect)))),
          });
        const fail = (inMs: number, error: UnavailableError): void => {
          simulation.outages.noteSilence(engine, called, begun, simulation.ms() + inMs);
          answer(inMs, () => reject(error));
        };
        const giveUp = (cause: string): void => fail(within(chance, DEADLINE), unavailable(cause, reads !== true));

        if (isAway()) return fail(wayMs(), unavailable('is away', false));
        if (fails('refuses')) return fail(wayMs(), unavailable('refuses the call', false));
        if (fails('loses a request')) return giveUp('does not answer');
        if (reads !== true && fails(LATE_CALL)) {
          giveUp('does not answer');
          return carryOut(within(chance, LATE), (outcome) =>
            simulation.marks.sometimes(`${engine}: an abandoned call takes effect`, 'value' in outcome),
          );
        }
        if (repeatable === true && fails('is called twice')) carryOut(wayMs(called) + wayMs(called), () => undefined);
        return carryOut(wayMs(called), (outcome) => {
          if (isAway()) return giveUp('went away before it answered');
          if ('error' in outcome) simulation.marks.sometimes(`${engine}: ${(outcome.error as Error).name}`);
          const written = reads !== true && 'value' in outcome;
          if (fails('loses its caller')) {
            simulation.marks.sometimes(`${engine}: a process crashes between a write and its answer`, written);
            process.crash();
          }
          if (fails('loses an answer')) {
            simulation.marks.sometimes(`${engine}: a write has an unknown outcome and has happened`, written);
            giveUp('lost its answer');
          } else {
            if (written && fails('goes away after a write'))
              simulation.outages.begin(engine, simulation.ms() + within(chance, AWAY));
            const inMs = wayMs(called);
            const ended = simulation.ms() + inMs;
            if (ended - begun > LATE_ANSWER_MS) simulation.outages.noteSilence(engine, called, begun, ended);
            answer(inMs, () => ('error' in outcome ? reject(outcome.error as Error) : resolve(outcome.value)));
          }
          return undefined;
        });
      });
    },
    send: inOrder((text, inMs, run) =>
      simulation.schedule({ owner: simulation.neutral, inMs, kind: 'request', text: `${engine} ${text}`, run }),
    ),
    deliver: inOrder((text, inMs, run) =>
      simulation.schedule({ owner: process, inMs, kind: 'delivery', text: `${engine} ${text}`, run }),
    ),
    connected: () => process.alive,
    onLost(lost) {
      process.onEnd(() => {
        const owner = simulation.neutral;
        simulation.schedule({ owner, inMs: within(chance, LOST), kind: 'lost', text: engine, run: lost });
      });
    },
    happens,
  };
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

function outcomeOf<T>(effect: () => T): Outcome<T> {
  try {
    return { value: effect() };
  } catch (error) {
    return { error };
  }
}

function within(chance: Chance, { least, most }: { readonly least: number; readonly most: number }): number {
  return chance.between(least, most);
}
