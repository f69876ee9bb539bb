import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable, Worker } from 'node:worker_threads';
import { UnavailableError } from '../../ports/unavailable.js';
import { type OpenedFiles, openedFiles } from './openedFiles.js';

export interface ThreadData {
  readonly file: string;
  readonly opened: OpenedFiles;
  readonly longLived: boolean;
}

export function threadData(file: string, longLived = false): ThreadData {
  return { file, opened: openedFiles(file), longLived };
}

const READY = 'ready';
const CLOSE = 'close';

/**
 * Delay of a thread started `'soon'`: other threads can do its work until then, and the start is not slowed down. It is
 * loaded early because the program's files may be replaced while it runs (docs/deployment.md).
 */
const SOON_MS = 5_000;

/** The client of a thread. The first message starts the thread, and the next message after its death starts another. */
export interface ThreadClient<M> {
  send(message: M, transfer?: readonly Transferable[]): void;
  start(): void;
  state(): 'none' | 'loading' | 'ready';
  /** Whether an awaited answer keeps the process alive; initially not. */
  keepAlive(wanted: boolean): void;
  /** Resolves when a thread started at once has loaded or ended. The process lives until then. */
  readonly loaded: Promise<void>;
  /** Restarts a thread that has died. @throws UnavailableError until it works */
  ping(): void;
  /** Ends the thread after its earlier messages. No message may follow. */
  close(): Promise<void>;
}

/** A worker, or a port: a thread that serves several ports closes one where a worker of its own would end. */
export type Thread = Worker | MessagePort;

export interface ThreadClientOptions<A> {
  readonly spawn: () => Thread;
  /** Whether the thread is started before its first message; `'soon'`: some seconds later. */
  readonly atOnce: boolean | 'soon';
  readonly ended: (cause: Error | undefined) => string;
  readonly onAnswer: (answer: A) => void;
  /** Called when the thread has ended, also after `close`: open messages get no answer any more. */
  readonly onEnd: (failure: UnavailableError) => void;
}

export function threadClient<M, A>({ spawn, atOnce, ended, onAnswer, onEnd }: ThreadClientOptions<A>): ThreadClient<M> {
  let worker: Thread | undefined;
  let ready = false;
  let wanted = false;
  let closing = false;
  let failure: UnavailableError | undefined;
  let loading = atOnce === true;
  let hasLoaded: () => void = () => undefined;
  const loaded = loading ? new Promise<void>((resolve) => (hasLoaded = resolve)) : Promise.resolve();

  function hold(): void {
    if (wanted || loading || closing) worker?.ref();
    else worker?.unref();
  }

  function endLoading(): void {
    if (!loading) return;
    loading = false;
    hold();
    hasLoaded();
  }

  function running(): Thread {
    if (worker !== undefined) return worker;
    const started = spawn();
    let cause: Error | undefined;
    started.on('message', (message: typeof READY | A) => {
      failure = undefined;
      if (message !== READY) return onAnswer(message);
      ready = true;
      return endLoading();
    });
    started.on('error', (error: Error) => {
      cause = error;
    });
    started.on(endOf(started), () => {
      worker = undefined;
      ready = false;
      failure = new UnavailableError(ended(cause), {
        outcomeUnknown: true,
        cause,
        publicReason: 'the thread that writes it has ended',
      });
      onEnd(failure);
      endLoading();
    });
    worker = started;
    hold();
    return started;
  }

  if (atOnce === true) running();
  const soon = atOnce === 'soon' ? setTimeout(running, SOON_MS).unref() : undefined;
  return {
    loaded,
    send: (message, transfer = []) => running().postMessage(message, transfer),
    start: () => void running(),
    state: () => (worker === undefined ? 'none' : ready ? 'ready' : 'loading'),
    keepAlive(now) {
      if (now === wanted) return;
      wanted = now;
      hold();
    },
    ping() {
      if (failure === undefined) return;
      running();
      throw failure;
    },
    async close() {
      clearTimeout(soon);
      if (worker === undefined) return;
      const last = worker;
      closing = true;
      hold();
      await new Promise((resolve) => {
        last.once(endOf(last), resolve);
        last.postMessage(CLOSE);
      });
    },
  };
}

function endOf(thread: Thread): 'exit' | 'close' {
  return thread instanceof Worker ? 'exit' : 'close';
}

export interface ThreadServer<M, A> {
  ready(): void;
  answer(answer: A): void;
  receive(): M | undefined;
  closing(): boolean;
}

/** Serves a thread's messages. When the client closes, calls `close` after the current message. */
export function serveThread<M, A>(
  handle: (message: M) => void,
  close: () => Promise<void> | void,
  port: MessagePort = parentPort!,
): ThreadServer<M, A> {
  let closing = false;

  async function end(): Promise<void> {
    await close();
    port.close();
  }

  function accept(message: M | typeof CLOSE): M | undefined {
    if (message !== CLOSE) return message;
    closing = true;
    return undefined;
  }

  port.on('message', (message: M | typeof CLOSE) => {
    const accepted = accept(message);
    if (accepted !== undefined) handle(accepted);
    if (closing) void end();
  });

  return {
    ready: () => port.postMessage(READY),
    answer: (answer) => port.postMessage(answer),
    receive() {
      const received = closing
        ? undefined
        : (receiveMessageOnPort(port) as { readonly message: M | typeof CLOSE } | undefined);
      return received === undefined ? undefined : accept(received.message);
    },
    closing: () => closing,
  };
}
