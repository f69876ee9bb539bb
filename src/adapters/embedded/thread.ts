/** The threads that work on a data file, as whoever starts them sees them. */
import type { Worker } from 'node:worker_threads';

/** What such a thread is started with. */
export interface ThreadData {
  /** The file; another connection of the process has it open already. */
  readonly file: string;
}

/** Has a thread end once it has done what it was sent before: it is sent `'close'`. Resolves when it has ended; keeps the process alive until then. */
export async function endThread(thread: Worker): Promise<void> {
  thread.ref();
  await new Promise((resolve) => {
    thread.once('exit', resolve);
    thread.postMessage('close');
  });
}
