/**
 * A process's view of the engines that can die at a chosen moment: from then on nothing it asks for is done or
 * answered.
 */
import type { ProcessorDeps } from '../../../src/processors/processors.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

/** Parts that can die. */
export interface Mortal {
  readonly deps: Pick<ProcessorDeps, 'events' | 'records' | 'bus'>;
  readonly dead: boolean;
  /** Effects (appends, requests) so far. */
  readonly effects: number;
}

/** The engines, until the `at`th effect (from 1): `before` it is done, or `after`, before its answer. */
export function mortal(
  deps: Pick<ProcessorDeps, 'events' | 'records' | 'bus'>,
  at: number,
  moment: 'before' | 'after',
): Mortal {
  let effects = 0;
  let dead = false;
  const gone = (): never => {
    throw new UnavailableError('this process is dead');
  };
  const alive = async <T>(run: () => Promise<T>): Promise<T> => (dead ? gone() : run());
  const effect = async <T>(run: () => Promise<T>): Promise<T> => {
    if (dead) gone();
    const fatal = ++effects === at;
    if (fatal && moment === 'before') dead = true;
    if (dead) gone();
    const result = run();
    if (fatal) dead = true;
    await result;
    return dead ? gone() : result;
  };
  const { events, records, bus } = deps;
  return {
    get dead() {
      return dead;
    },
    get effects() {
      return effects;
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
