import { ExponentialBackoff, noJitterGenerator } from 'cockatiel';
import { randomFraction } from './world.js';

/**
 * Waits between attempts: `firstMs`, doubled after each, at most `mostMs`; less up to half at random, so that processes
 * don't try at once. As cockatiel's `halfJitterGenerator`, whose chance is not the world's.
 */
export const backoff = (firstMs: number, mostMs: number): ExponentialBackoff<number> =>
  new ExponentialBackoff<number>({
    initialDelay: firstMs,
    maxDelay: mostMs,
    generator(attempts, options) {
      const [delay, next] = noJitterGenerator(attempts, options);
      return [Math.floor((delay + randomFraction() * delay) / 2), next];
    },
  });
