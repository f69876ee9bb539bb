/**
 * The side of the writer that asks: gathers what is asked within a turn of the event loop into one message, and hands
 * back the answers.
 */
import type { Worker } from 'node:worker_threads';
import { UnavailableError } from '../../../ports/unavailable.js';
import { endThread, loaded } from '../thread.js';
import type { ThreadFault } from '../sqlite.js';
import type { Answer, FromWriter, Numbered, ToWriter, WriterRequest } from './messages.js';

/** The writer as the thread that has opened the store sees it. */
export interface WriterLink {
  /** Asks and waits for the answer. @throws UnavailableError, or what the fault means. */
  call<R>(request: WriterRequest): Promise<R>;
  /** Asks for something that is not answered. */
  send(request: WriterRequest): void;
  /** Resolves when everything asked so far is on its way to the writer: in the next turn of the event loop. */
  sent(): Promise<void>;
  /** Resolves when the first writer's thread has loaded everything, or has died. */
  readonly loaded: Promise<void>;
  /** Whether there is a writer. Starts another where one has died. @throws UnavailableError until that one works */
  ping(): void;
  /** How many writers have died: what was asked of one, and is not answered, no other does. */
  deaths(): number;
  /** Lets the writer finish what was asked, and ends its thread. */
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Starts the writer's thread, and another should it ever die; what it had not answered then fails with an unknown
 * outcome. `errorOf` says what a fault means. `answering` is called before anybody learns of what the writer answered.
 */
export function openLink(
  start: () => Worker,
  errorOf: (fault: ThreadFault) => Error,
  answering: () => void,
): WriterLink {
  const pending = new Map<number, Pending>();
  let outbox: Numbered[] = [];
  let flushing: Promise<void> | undefined;
  let lastId = 0;
  let worker: Worker | undefined;
  let closed = false;
  let deaths = 0;
  /** Why there is no writer, until there is one again. */
  let failure: UnavailableError | undefined;

  function running(): Worker {
    if (worker !== undefined) return worker;
    const started = start();
    let cause: unknown;
    started.on('message', (message: FromWriter) => {
      failure = undefined;
      if (message !== 'ready') settle(message);
    });
    started.on('error', (error: unknown) => {
      cause = error;
    });
    started.on('exit', () => {
      if (worker === started) worker = undefined;
      failure = new UnavailableError('the read store: its writer ended', {
        outcomeUnknown: true,
        cause,
        told: 'the thread that writes it has ended',
      });
      for (const { reject } of pending.values()) reject(failure);
      pending.clear();
      // It has just failed, so nobody is to do it any more.
      outbox = [];
      deaths += 1;
    });
    worker = started;
    return started;
  }

  function settle(answers: readonly Answer[]): void {
    answering();
    for (const { id, value, fault } of answers) {
      const waiting = pending.get(id);
      pending.delete(id);
      if (fault === undefined) waiting?.resolve(value);
      else waiting?.reject(errorOf(fault));
    }
  }

  function post(message: ToWriter): void {
    running().postMessage(message);
  }

  function sent(): Promise<void> {
    flushing ??= new Promise((resolve) => {
      setImmediate(() => {
        flushing = undefined;
        const requests = outbox;
        outbox = [];
        if (requests.length > 0) post(requests);
        resolve();
      });
    });
    return flushing;
  }

  function send(id: number, request: WriterRequest): void {
    if (closed) throw new UnavailableError('the read store is closed');
    outbox.push({ id, request });
    void sent();
  }

  const hasLoaded = loaded(running(), true);
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
    loaded: hasLoaded,
    ping() {
      if (failure === undefined) return;
      running();
      throw failure;
    },
    deaths: () => deaths,
    async close() {
      closed = true;
      await sent();
      if (worker !== undefined) await endThread(worker);
    },
  };
}
