/** The threads that work on a data file, as whoever starts them sees them. */
import type { Worker } from 'node:worker_threads';
import { type OpenedFiles, openedFiles } from './openedFiles.js';

/** What such a thread is started with. */
export interface ThreadData {
  /** The file; another connection of the process has it open already. */
  readonly file: string;
  /** The files as that connection found them. */
  readonly opened: OpenedFiles;
  /** Whether the threads that it starts in turn are started with it: see `EmbeddedEventStoreOptions.longLived`. */
  readonly longLived: boolean;
}

/** For the threads of a file that this thread has opened. */
export function threadData(file: string, longLived = false): ThreadData {
  return { file, opened: openedFiles(file), longLived };
}

/**
 * Resolves when the thread says `'ready'`, having loaded everything, or with its end: who needs the thread is told why
 * there is none. Keeps the process alive until then.
 * @param thread `undefined`: none was started
 * @param stays whether it keeps the process alive afterwards, too
 */
export async function loaded(thread: Worker | undefined, stays = false): Promise<void> {
  if (thread === undefined) return;
  thread.ref();
  await new Promise<void>((resolve) => {
    thread.on('message', function heard(message: unknown) {
      if (message !== 'ready') return;
      thread.off('message', heard);
      resolve();
    });
    thread.once('exit', () => resolve());
  });
  if (!stays) thread.unref();
}

/**
 * Has a thread end once it has done what it was sent before: it is sent `'close'`. Resolves when it has ended; keeps
 * the process alive until then.
 */
export async function endThread(thread: Worker): Promise<void> {
  thread.ref();
  await new Promise((resolve) => {
    thread.once('exit', resolve);
    thread.postMessage('close');
  });
}
