/** A door that lets a few through at once and keeps the others waiting in their order. */
import { HttpError } from '../pipeline/errors.js';

/** Runs work, a bounded number side by side. */
export interface Gate {
  /**
   * Runs `work` when it is its turn. @throws HttpError too_many_requests when too many wait already; whatever `work`
   * throws.
   */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Nothing runs or waits. */
  idle(): boolean;
}

/** A gate for `width` at once, with at most `places` waiting. */
export function gate(width: number, places: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    async run(work) {
      if (running < width) running += 1;
      else if (waiting.length < places) await new Promise<void>((resolve) => waiting.push(resolve));
      else throw new HttpError('too_many_requests', { headers: { 'Retry-After': '1' } });
      try {
        return await work();
      } finally {
        // The place is handed over, never free in between: who comes now can't overtake who waits.
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
    idle: () => running === 0,
  };
}

/** A gate of its own for every key, one at once; a key without work takes no memory. */
export function keyedGate(places: number): { run<T>(key: string, work: () => Promise<T>): Promise<T> } {
  const gates = new Map<string, Gate>();
  return {
    async run(key, work) {
      const one = gates.get(key) ?? gate(1, places);
      gates.set(key, one);
      try {
        return await one.run(work);
      } finally {
        if (one.idle()) gates.delete(key);
      }
    },
  };
}
