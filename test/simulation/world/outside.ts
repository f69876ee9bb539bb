/**
 * Work that Node does outside the event loop: on its pool of threads, such as password hashes, signatures and files. In
 * a simulation this work takes no virtual time. Only one such work runs at a time, so that their order does not depend
 * on the machine.
 */

const nextTurn = setImmediate;
let last: Promise<unknown> = Promise.resolve();
let pending = 0;

/** Does outside work after all earlier such work. */
export async function outside<T>(work: () => Promise<T>): Promise<T> {
  pending += 1;
  const done = last.then(work, work);
  last = done.catch(() => undefined);
  try {
    return await done;
  } finally {
    pending -= 1;
  }
}

/** Resolves once no microtask, no tick and no outside work is left. */
export async function drained(): Promise<void> {
  do await new Promise((resolve) => nextTurn(resolve));
  while (pending > 0);
}
