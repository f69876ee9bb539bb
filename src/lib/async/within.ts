import { after, endTimer, type Timer } from '../world.js';

/** The promise's outcome, or after `ms` that of `late`. The late promise runs on, and its outcome is ignored. */
export async function within<T, L>(promise: Promise<T>, ms: number, late: () => L | Promise<L>): Promise<T | L> {
  let timer: Timer | undefined;
  const over = new Promise<void>((resolve) => {
    timer = after(ms, resolve);
  });
  try {
    return await Promise.race([promise, over.then(late)]);
  } finally {
    endTimer(timer);
  }
}
