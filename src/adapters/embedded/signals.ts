/**
 * What the threads of one process that have a data folder open tell each other. Each could see it in the files by
 * itself, as other processes do, but would have to look for it all the time, or let others wait for its next look.
 */
import { resolve } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import type { Checkpoint } from '../../ports/readStore.js';

/** One thing told. */
export type Signal =
  /** Somebody waits for a read model to show what is in the log. */
  | { readonly kind: 'wanted' }
  /** Projections have come so far. */
  | { readonly kind: 'stored'; readonly checkpoints: readonly Checkpoint[] };

/** The signals of one data folder. */
export interface Signals {
  /** Tells all the others in this process that have opened signals of the folder; nothing once closed. */
  tell(signal: Signal): void;
  close(): void;
}

/**
 * Opens the signals of a data folder; they keep no thread alive. @param heard told what others tell, in the order of
 * each
 */
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
