/**
 * One thread that writes any number of read stores that are opened late: a running service's program files may have
 * been replaced by then.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { type ThreadData, threadClient } from '../thread.js';
import type { ScratchRequest } from './messages.js';

export interface ScratchWriter {
  /** Resolves when the thread has loaded, or ended. */
  readonly loaded: Promise<void>;
  /** Starts to write a store. @returns the port to its writer, in place of a thread */
  writerOf(data: ThreadData): MessagePort;
  /** Ends the thread. The stores that it writes must be closed before. */
  close(): Promise<void>;
}

/** Starts the thread at once, and another when it is needed after one has died. */
export function openScratchWriter(
  onDeath: (error: Error) => void,
  script = new URL('./scratchWorker.js', import.meta.url),
): ScratchWriter {
  const thread = threadClient<ScratchRequest, never>({
    spawn: () => new Worker(script, { name: 'copy writer' }),
    atOnce: true,
    ended: () => 'the thread that writes scratch stores ended',
    onAnswer: () => undefined,
    // The ports of the thread's stores close when it ends.
    onEnd({ cause }) {
      if (cause instanceof Error) onDeath(cause);
    },
  });
  return {
    loaded: thread.loaded,
    writerOf(data) {
      const { port1, port2 } = new MessageChannel();
      thread.send({ data, port: port2 }, [port2]);
      return port1;
    },
    close: thread.close,
  };
}
