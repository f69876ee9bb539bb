/** Lowers the priority of this process: requests have processor and memory first. */
import { readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Other processes that want a processor go first. */
const NICE = 15;
/** In percent: garbage is collected earlier than by default. */
const HEAP_GROWTH = 20;
/** A thread for each entry, those of the garbage collector too: on Linux each has its own priority. */
const THREADS = '/proc/self/task';

/** For the whole process, from now on. */
export function yieldProcessor(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
  setPriority(NICE);
  for (const thread of process.platform === 'linux' ? readdirSync(THREADS) : []) setPriority(Number(thread), NICE);
}
