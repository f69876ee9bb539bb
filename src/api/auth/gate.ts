import { HttpError } from '../pipeline/errors.js';

export interface Gate {
  /** @throws HttpError too_many_requests at a full queue; errors of `work` */
  run<T>(work: () => Promise<T>): Promise<T>;
  idle(): boolean;
}

/** At most `width` run at once, at most `places` wait. */
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
        // Hands the slot over without freeing it, so that a newcomer can't overtake.
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
    idle: () => running === 0,
  };
}

/** Idle keys take no memory. */
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
