/**
 * Work that Node does outside the event loop: on its pool of threads, such as password hashes, signatures and files. In
 * a simulation this work takes no virtual time. Only one such work runs at a time, so that their order does not depend
 * on the machine.
 */

const nextTurn = setImmediate;
let last: Promise<unknown> = Promise.resolve();
let pending = 0;
/** Callbacks that Node calls one after the other, with all microtasks and ticks between, in one turn of its loop. */
const CALLS_OF_TURN = 128;
let calls = 0;
let wake: (() => void) | undefined;

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
  await nextCall();
  while (pending > 0) await new Promise((resolve) => nextTurn(resolve));
}

/** Resolves after all microtasks and ticks. A turn of the loop for each entry would take longer than most entries. */
function nextCall(): Promise<void> {
  return new Promise((resolve) => {
    wake = resolve;
    if (calls > 0) return;
    calls = CALLS_OF_TURN;
    for (let n = 0; n < CALLS_OF_TURN; n++) nextTurn(called);
  });
}

function called(): void {
  calls -= 1;
  const waiting = wake;
  wake = undefined;
  waiting?.();
}
