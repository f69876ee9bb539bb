/**
 * One thread for what no request waits for: it moves WAL pages of any number of files, and writes stores that are
 * opened late, when a running service's program files may have been replaced.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { VERSION } from '../../lib/version.js';
import { type ThreadData, threadClient } from './thread.js';

/** Work for the other side of `port`, until that closes it. */
export type BackgroundRequest =
  /** Moves the pages of a WAL (`checkpointer.ts`). */
  | { readonly kind: 'checkpoints'; readonly file: string; readonly port: MessagePort }
  /** Writes a read store. */
  | { readonly kind: 'scratch store'; readonly data: ThreadData; readonly port: MessagePort }
  /** Takes requests. */
  | { readonly kind: 'share'; readonly port: MessagePort };

export type BackgroundData = Pick<ThreadData, 'version'>;

export interface Background {
  /** Resolves when the thread has loaded, or ended. */
  readonly loaded: Promise<void>;
  /** The way on which a writer has the WAL of its file moved (`ThreadData.checkpoints`). */
  checkpointsOf(file: string): MessagePort;
  /** Starts to write a store. @returns the port to its writer, in place of a thread */
  writerOf(data: ThreadData): MessagePort;
  /** The way to this thread for another one, which opens it with `shared`. */
  share(): MessagePort;
  /** Ends the thread. What it works for must be closed before. */
  close(): Promise<void>;
}

interface BackgroundOptions {
  /** Called when the thread has died. Another one is started when it is needed. */
  readonly onDeath: (error: Error) => void;
  /** The way to the thread of another one, in place of an own thread until that ends. */
  readonly shared?: MessagePort | undefined;
  /** Whether the thread starts at once, or when it is first needed. */
  readonly atOnce: boolean;
  readonly script?: URL;
}

export function openBackground({
  onDeath,
  shared,
  atOnce,
  script = new URL('./backgroundWorker.js', import.meta.url),
}: BackgroundOptions): Background {
  const thread = threadClient<BackgroundRequest, never>({
    first: shared,
    spawn: () => new Worker(script, { name: 'background', workerData: { version: VERSION } satisfies BackgroundData }),
    atOnce,
    ended: () => 'the thread that moves WAL pages and writes copies ended',
    onAnswer: () => undefined,
    // The ports of what it works for close when it ends.
    onEnd({ cause }) {
      if (cause instanceof Error) onDeath(cause);
    },
  });
  function portFor(request: (port: MessagePort) => BackgroundRequest): MessagePort {
    const { port1, port2 } = new MessageChannel();
    thread.send(request(port2), [port2]);
    return port1;
  }
  return {
    loaded: thread.loaded,
    checkpointsOf: (file) => portFor((port) => ({ kind: 'checkpoints', file, port })),
    writerOf: (data) => portFor((port) => ({ kind: 'scratch store', data, port })),
    share: () => portFor((port) => ({ kind: 'share', port })),
    close: thread.close,
  };
}
