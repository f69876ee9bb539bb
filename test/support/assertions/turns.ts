/** Tells whether work lets others have their turn. */
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';

/** Milliseconds that pass between two looks at the clock, however fast the machine is. */
const LOOK_MS = 1;

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
  let now = 0;
  enterWorld({ ...REAL_WORLD, ticks: () => (now += LOOK_MS) });
  try {
    await work();
  } finally {
    enterWorld(REAL_WORLD);
    done = true;
  }
  return turns;
}
