/**
 * A process's view of the engines that can die at a chosen moment: from then on nothing it asks for is done or
 * answered.
 */
import type { ProcessorDeps } from '../../../src/processors/managers.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

/** A life that ends at a chosen effect. */
export interface Life {
  readonly dead: boolean;
  /** Effects so far. */
  readonly effects: number;
  /** What changes nothing. */
  alive<T>(run: () => Promise<T>): Promise<T>;
  effect<T>(run: () => Promise<T>): Promise<T>;
}

/** It ends at the `at`th effect (from 1): `before` it is done, or `after`, before its answer. */
export function lifeUntil(at: number, moment: 'before' | 'after'): Life {
  let effects = 0;
  let dead = false;
  const gone = (): never => {
    throw new UnavailableError('this process is dead');
  };
  return {
    get dead() {
      return dead;
    },
    get effects() {
      return effects;
    },
    alive: async (run) => (dead ? gone() : run()),
    async effect(run) {
      if (dead) gone();
      const fatal = ++effects === at;
      if (fatal && moment === 'before') dead = true;
      if (dead) gone();
      const result = run();
      if (fatal) dead = true;
      await result;
      return dead ? gone() : result;
    },
  };
}

/** Parts that can die. */
export interface Crashable {
  readonly deps: Pick<ProcessorDeps, 'events' | 'records' | 'bus'>;
  readonly dead: boolean;
  /** Effects (appends, requests) so far. */
  readonly effects: number;
}

/** The engines, until the `at`th effect (from 1): `before` it is done, or `after`, before its answer. */
export function crashable(
  deps: Pick<ProcessorDeps, 'events' | 'records' | 'bus'>,
  at: number,
  moment: 'before' | 'after',
): Crashable {
  const life = lifeUntil(at, moment);
  const { alive, effect } = life;
  const { events, records, bus } = deps;
  return {
    get dead() {
      return life.dead;
    },
    get effects() {
      return life.effects;
    },
    deps: {
      events: {
        ...events,
        append: (...args) => effect(() => events.append(...args)),
        read: (...args) => alive(() => events.read(...args)),
      },
      records: {
        get: (...args) => alive(() => records.get(...args)),
        put: (...args) => alive(() => records.put(...args)),
        delete: (...args) => alive(() => records.delete(...args)),
        list: (...args) => alive(() => records.list(...args)),
      },
      bus: { ...bus, request: (...args) => effect(() => bus.request(...args)) },
    },
  };
}
