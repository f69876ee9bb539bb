/**
 * A second thread that hashes leaves while the first one reads the log: hashing takes two thirds of the time. It is
 * only for programs that end soon: a program that starts it later may load another release's file.
 */
import { Worker } from 'node:worker_threads';
import type { EventTexts } from '../../../ports/eventStore.js';
import type { LeafRules } from '../format/eventLeaf.js';
import { type Deferred, deferred } from '../../../lib/async/deferred.js';
import { sentTexts } from './leafMessages.js';

export interface LeafThread {
  /**
   * Hashes of the events' leaves, one after another, with `NO_LEAF` for events without a leaf. Rejects when the thread
   * has ended.
   */
  hash(events: readonly EventTexts[]): Promise<Buffer>;
  close(): Promise<void>;
}

export function openLeafThread(rules: LeafRules): LeafThread {
  const thread = new Worker(new URL('./leafWorker.js', import.meta.url), { workerData: rules });
  const waiting: Deferred<Buffer>[] = [];
  let failure: Error | undefined;
  thread.on('message', (hashes: Uint8Array<ArrayBuffer>) => waiting.shift()?.resolve(Buffer.from(hashes.buffer)));
  thread.on('error', (error: Error) => (failure = error));
  thread.on('exit', (code) => {
    failure ??= new Error(`the thread that hashes leaves ended with ${code}`);
    for (const one of waiting.splice(0)) one.reject(failure);
  });
  return {
    async hash(events) {
      if (failure !== undefined) throw failure;
      const answer = deferred<Buffer>();
      waiting.push(answer);
      thread.postMessage(sentTexts(events));
      return answer.promise;
    },
    async close() {
      await thread.terminate();
    },
  };
}
