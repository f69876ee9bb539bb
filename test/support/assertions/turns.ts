/** Tells whether work lets others have their turn. */

/**
 * How often the event loop turned until the work was done; nothing but the work may let it turn, no timer and no I/O.
 */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let done = false;
  const turn = (): void => {
    if (done) return;
    turns += 1;
    setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    done = true;
  }
  return turns;
}
