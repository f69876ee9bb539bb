/**
 * Broadcasts between the threads of one process that have a data folder open. Without them a thread would have to poll
 * the files, as other processes do.
 */
import { resolve } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import type { Checkpoint } from '../../ports/readStore.js';

export type Signal =
  /** A reader waits for a read model to reach the log's end. */
  | { readonly kind: 'wanted' }
  /** New checkpoints of projections. */
  | { readonly kind: 'stored'; readonly checkpoints: readonly Checkpoint[] };

export interface Signals {
  /** Reaches all other holders of signals of the folder in this process; nothing once closed. */
  tell(signal: Signal): void;
  close(): void;
}

/** Keeps no thread alive. @param heard receives the signals of others, in the order of each */
export function openSignals(dir: string, heard: (signal: Signal) => void): Signals {
  const channel = new BroadcastChannel(`gift-commerce ${resolve(dir)}`);
  let closed = false;
  channel.onmessage = (event) => heard((event as { readonly data: Signal }).data);
  channel.unref();
  return {
    tell(signal) {
      if (!closed) channel.postMessage(signal);
    },
    close() {
      closed = true;
      channel.close();
    },
  };
}
