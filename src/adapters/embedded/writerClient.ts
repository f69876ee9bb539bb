/** The client of a thread that writes a store: sends the requests of a turn of the event loop in one message. */
import { UnavailableError } from '../../ports/unavailable.js';
import { tickBatcher } from '../../lib/async/tickBatcher.js';
import { inFlight } from '../../lib/inFlight.js';
import type { DataFileKind, ThreadFault } from './sqlite.js';
import { type Thread, threadClient } from './thread.js';

/** A request and the number that its answer carries; 0: no answer is expected. */
export interface NumberedRequest<Q> {
  readonly id: number;
  readonly request: Q;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: ThreadFault;
}

export interface WriterClient<Q> {
  /** Sends a request and waits for its answer. @throws UnavailableError, or the error of the fault */
  call<R>(request: Q): Promise<R>;
  send(request: Q): void;
  /** Resolves when every request so far was sent: in the next turn of the event loop. */
  sent(): Promise<void>;
  readonly loaded: Promise<void>;
  ping(): void;
  /** How many writer threads have died. A new thread does not repeat a dead thread's unfinished work. */
  deaths(): number;
  close(): Promise<void>;
}

interface WriterClientOptions {
  /** The kind of store, as error messages name it. */
  readonly store: DataFileKind;
  readonly start: () => Thread;
  /** Whether the first thread starts at once, or with the first request. */
  readonly atOnce: boolean;
  readonly errorOf: (fault: ThreadFault) => Error;
  /** Called before the writer's answers are delivered to their callers. */
  readonly answering?: () => void;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Starts the writer's thread, and another after it has died; unanswered requests then fail with an unknown outcome. */
export function openWriterClient<Q>({
  store,
  start,
  atOnce,
  errorOf,
  answering = () => undefined,
}: WriterClientOptions): WriterClient<Q> {
  const pending = inFlight<Pending>();
  let closed = false;
  let deaths = 0;
  const thread = threadClient<readonly NumberedRequest<Q>[], readonly Answer[]>({
    spawn: start,
    atOnce,
    ended: () => `the ${store}: its writer ended`,
    onAnswer: settle,
    onEnd(failure) {
      for (const { reject } of pending.clear()) reject(failure);
      // These requests have failed, so no other thread may execute them.
      outbox.clear();
      deaths += 1;
    },
  });
  thread.keepAlive(true);
  const outbox = tickBatcher<NumberedRequest<Q>>((requests) => {
    thread.send(requests);
    return undefined;
  });

  function settle(answers: readonly Answer[]): void {
    answering();
    for (const { id, value, fault } of answers) {
      const waiting = pending.take(id);
      if (fault === undefined) waiting?.resolve(value);
      else waiting?.reject(errorOf(fault));
    }
  }

  /** Immediates run in order, so this one follows the requests of the turn. */
  function sent(): Promise<void> {
    return new Promise((resolve) => void setImmediate(resolve));
  }

  function refuseIfClosed(): void {
    if (closed) throw new UnavailableError(`the ${store} is closed`);
  }

  return {
    call<R>(request: Q) {
      return new Promise<R>((resolve, reject) => {
        refuseIfClosed();
        outbox.add({ id: pending.put({ resolve: resolve as Pending['resolve'], reject }), request });
      });
    },
    send(request) {
      refuseIfClosed();
      outbox.add({ id: 0, request });
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
