import type { Worker } from 'node:worker_threads';
import { UnavailableError } from '../../../ports/unavailable.js';
import { tickBatcher } from '../../../lib/async/tickBatcher.js';
import type { ThreadFault } from '../sqlite.js';
import { threadClient } from '../thread.js';
import type { Answer, Numbered, WriterRequest } from './messages.js';

export interface WriterClient {
  /** @throws UnavailableError, or the error of the fault */
  call<R>(request: WriterRequest): Promise<R>;
  send(request: WriterRequest): void;
  sent(): Promise<void>;
  readonly loaded: Promise<void>;
  ping(): void;
  /** A new thread does not repeat a dead one's unfinished work. */
  deaths(): number;
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Unanswered requests of a dead thread fail with an unknown outcome.
 * @param answering called before each message of answers
 */
export function openWriterClient(
  start: () => Worker,
  errorOf: (fault: ThreadFault) => Error,
  answering: () => void,
): WriterClient {
  const pending = new Map<number, Pending>();
  let lastId = 0;
  let closed = false;
  let deaths = 0;
  const thread = threadClient<readonly Numbered[], readonly Answer[]>({
    spawn: start,
    atOnce: true,
    ended: () => 'the read store: its writer ended',
    onAnswer: settle,
    onEnd(failure) {
      for (const { reject } of pending.values()) reject(failure);
      pending.clear();
      // These requests have failed, so no other thread may execute them.
      outbox.clear();
      deaths += 1;
    },
  });
  thread.keepAlive(true);
  const outbox = tickBatcher<Numbered>((requests) => {
    thread.send(requests);
    return undefined;
  });

  function settle(answers: readonly Answer[]): void {
    answering();
    for (const { id, value, fault } of answers) {
      const waiting = pending.get(id);
      pending.delete(id);
      if (fault === undefined) waiting?.resolve(value);
      else waiting?.reject(errorOf(fault));
    }
  }

  /** Immediates run in order, so this one follows the requests of the turn. */
  function sent(): Promise<void> {
    return new Promise((resolve) => void setImmediate(resolve));
  }

  function send(id: number, request: WriterRequest): void {
    if (closed) throw new UnavailableError('the read store is closed');
    outbox.add({ id, request });
  }

  return {
    call<R>(request: WriterRequest) {
      return new Promise<R>((resolve, reject) => {
        const id = ++lastId;
        send(id, request);
        pending.set(id, { resolve: resolve as Pending['resolve'], reject });
      });
    },
    send(request) {
      send(0, request);
    },
    sent,
    loaded: thread.loaded,
    ping: thread.ping,
    deaths: () => deaths,
    async close() {
      closed = true;
      await sent();
      await thread.close();
    },
  };
}
