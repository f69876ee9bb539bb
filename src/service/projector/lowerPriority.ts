import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** Added nice value (Linux: sched(7)): a quarter of a busy processor for folding, which still keeps up with appends. */
const NICER = 5;
const LOWEST = 19;

/**
 * Lowers the priority of this thread and of threads that it starts later. Only on Linux, where threads have priorities.
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
