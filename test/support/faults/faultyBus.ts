/** A bus that does all that the port allows: loses requests, loses answers, repeats, delays. By chance, from a seed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bus, DeadlineError } from '../../../src/ports/bus.js';

/** Numbers from 0 to 1, the same for the same seed (https://en.wikipedia.org/wiki/Linear_congruential_generator). */
export function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The seeds that a test runs with: these, or the one that `TEST_SEED` says. */
export function seeds(...usual: readonly number[]): readonly number[] {
  const requested = process.env['TEST_SEED'];
  return requested === undefined ? usual : [Number(requested)];
}

/** The bus; about half of all requests have some fault. */
export function faultyBus(bus: Bus, seed: number): Bus {
  const chance = chances(seed);
  return {
    ...bus,
    async request<R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> {
      const fault = chance();
      await sleep(chance() * 10);
      if (fault < 0.15) throw new DeadlineError(subject, options.timeoutMs);
      const answer = bus.request<R>(subject, payload, options);
      // A request that was given up may fail, too.
      answer.catch(() => undefined);
      if (fault < 0.3) {
        await answer;
        throw new DeadlineError(subject, options.timeoutMs);
      }
      if (fault < 0.4) {
        // The answer is given up on; the request arrives all the same, later than the next attempt.
        void sleep(30)
          .then(() => bus.request(subject, payload, options))
          .catch(() => undefined);
        throw new DeadlineError(subject, options.timeoutMs);
      }
      if (fault < 0.5) void bus.request(subject, payload, options).catch(() => undefined);
      return answer;
    },
  };
}
