/** Threads that let others go first. */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/** A quarter of a processor that a thread of normal priority wants as well (Linux: sched(7), nice values): what is folded still keeps up with what is appended. */
const NICE = 5;

/**
 * Has this thread, and those that it starts from now on, give way to the process's others where there are more of them than processors. @returns whether it does: only Linux tells a thread
 * who it is, and has priorities of threads.
 */
export function giveWay(): boolean {
  try {
    const [id = ''] = /[0-9]+$/.exec(readlinkSync('/proc/thread-self')) ?? [];
    setPriority(Number(id), NICE);
    return true;
  } catch {
    return false;
  }
}
