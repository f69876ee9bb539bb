/** A thread that lets others go first. */
import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * A quarter of a processor that a thread of unchanged priority wants as well (Linux: sched(7), nice values): what is
 * folded still keeps up with what is appended.
 */
const NICER = 5;
/** Of nice values. */
const LOWEST = 19;

/**
 * Has this thread, and those that it starts from now on, give way to the process's others where more of them have work
 * than there are processors. Nothing happens where the system doesn't tell a thread who it is, or has no priorities of
 * threads: only Linux does.
 */
export function giveWay(): void {
  let id: number;
  try {
    id = Number(/[0-9]+$/.exec(readlinkSync('/proc/thread-self'))?.[0]);
  } catch {
    return;
  }
  setPriority(id, Math.min(getPriority(id) + NICER, LOWEST));
}
