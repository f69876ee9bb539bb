import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * About a quarter of a processor where a thread of normal priority wants it, too (Linux: sched(7), nice values):
 * folding still keeps up with appends.
 */
const NICER = 5;
const LOWEST = 19;

/**
 * Lowers the priority of this thread, and of those it starts from now on, below the process's others. Only Linux has
 * priorities of threads; elsewhere nothing happens.
 */
export function lowerPriority(): void {
  let id: number;
  try {
    id = Number(/[0-9]+$/.exec(readlinkSync('/proc/thread-self'))?.[0]);
  } catch {
    return;
  }
  setPriority(id, Math.min(getPriority(id) + NICER, LOWEST));
}
