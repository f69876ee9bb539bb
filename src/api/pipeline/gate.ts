import { openSlots } from '../../lib/async/slots.js';
import { HttpError } from './errors.js';

interface Gate {
  /** @throws HttpError too_many_requests at a full queue; errors of `work` */
  run<T>(work: () => Promise<T>): Promise<T>;
  idle(): boolean;
}

/** Gate for costly work: at most `width` pieces run at once, at most `places` wait. */
export function gate(width: number, places: number): Gate {
  const slots = openSlots(width);
  return {
    async run(work) {
      if (slots.taken === width && slots.waiting >= places) throw new HttpError('too_many_requests');
      const free = await slots.take();
      try {
        return await work();
      } finally {
        free();
      }
    },
    idle: () => slots.taken === 0,
  };
}

/** A gate for each key, through which one piece of work runs at a time. Idle keys take no memory. */
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
