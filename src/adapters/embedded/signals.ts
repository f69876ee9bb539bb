/** Broadcasts between the threads of this process that have one data folder open. Other processes poll its files. */
import { resolve } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import type { Checkpoint } from '../../ports/readStore.js';

type Signal =
  /** Tells other threads that a reader waits for a read model to reach the log's end. */
  { readonly kind: 'wanted' } | { readonly kind: 'stored'; readonly checkpoints: readonly Checkpoint[] };

export interface Signals {
  send(signal: Signal): void;
  close(): void;
}

/**
 * Opens the channel of a data folder, which keeps no thread alive. @param heard receives other threads' signals, in
 * each sender's order
 */
export function openSignals(dir: string, heard: (signal: Signal) => void): Signals {
  const channel = new BroadcastChannel(`gift-commerce ${resolve(dir)}`);
  let closed = false;
  channel.onmessage = (event) => heard((event as { readonly data: Signal }).data);
  channel.unref();
  return {
    send(signal) {
      if (!closed) channel.postMessage(signal);
    },
    close() {
      closed = true;
      channel.close();
    },
  };
}
