/** Of processor and memory of the machine the requests have theirs first: work that may take long beside them. */
import { readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Of all processes that want a processor, the others have it first. */
const NICE = 15;
/**
 * Garbage is collected when the heap has grown by so many percent, not only when it has become several times as large.
 */
const HEAP_GROWTH = 20;
/** A thread for each entry, those that collect garbage too: on Linux each has a priority of its own. */
const THREADS = '/proc/self/task';

/** From now on the whole process goes behind the others. */
export function yieldProcessor(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
  setPriority(NICE);
  for (const thread of process.platform === 'linux' ? readdirSync(THREADS) : []) setPriority(Number(thread), NICE);
}
