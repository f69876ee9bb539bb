/** Worker threads that work on a data file: the client that starts and asks one, and the server in the thread. */
import { parentPort, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { UnavailableError } from '../../ports/unavailable.js';
import { type OpenedFiles, openedFiles } from './openedFiles.js';

export interface ThreadData {
  /** Open in the process that starts the thread. */
  readonly file: string;
  readonly opened: OpenedFiles;
  /** Threads that it starts in turn are started at once: see `EmbeddedStoreOptions.longLived`. */
  readonly longLived: boolean;
}

/** For a file that this thread has opened. */
export function threadData(file: string, longLived = false): ThreadData {
  return { file, opened: openedFiles(file), longLived };
}

const READY = 'ready';
const CLOSE = 'close';

/** A worker thread as its user sees it: started by the first message, and again by the next one after it has died. */
export interface ThreadClient<M> {
  send(message: M): void;
  start(): void;
  state(): 'none' | 'loading' | 'ready';
  /** Whether the process stays alive for the thread, as long as an answer is awaited; at first it does not. */
  keepAlive(wanted: boolean): void;
  /**
   * Resolves when a thread that was started at once has loaded everything, or has ended. The process lives until then.
   */
  readonly loaded: Promise<void>;
  /** Starts another thread where one has died. @throws UnavailableError until that one works */
  ping(): void;
  /** Ends the thread after its earlier messages. Nothing may be sent any more. */
  close(): Promise<void>;
}

export interface ThreadClientOptions<A> {
  readonly spawn: () => Worker;
  /** Whether the first thread is started now, not by the first message. */
  readonly atOnce: boolean;
  readonly ended: (cause: Error | undefined) => string;
  readonly onAnswer: (answer: A) => void;
  /** The thread has ended, also after `close`: nothing sent to it is answered any more. */
  readonly onEnd: (failure: UnavailableError) => void;
}

export function threadClient<M, A>({ spawn, atOnce, ended, onAnswer, onEnd }: ThreadClientOptions<A>): ThreadClient<M> {
  let worker: Worker | undefined;
  let ready = false;
  let wanted = false;
  let closing = false;
  /** Why there is no thread, until one works again. */
  let failure: UnavailableError | undefined;
  let loading = atOnce;
  let hasLoaded: () => void = () => undefined;
  const loaded = atOnce ? new Promise<void>((resolve) => (hasLoaded = resolve)) : Promise.resolve();

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

  function running(): Worker {
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
    started.on('exit', () => {
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

  if (atOnce) running();
  return {
    loaded,
    send: (message) => running().postMessage(message),
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
      if (worker === undefined) return;
      const last = worker;
      closing = true;
      hold();
      await new Promise((resolve) => {
        last.once('exit', resolve);
        last.postMessage(CLOSE);
      });
    },
  };
}

export interface ThreadServer<M, A> {
  /** To be called once everything is loaded. */
  ready(): void;
  answer(answer: A): void;
  /** The next message that is there already. */
  receive(): M | undefined;
  /** Whether the thread ends after the current message. */
  closing(): boolean;
}

/** Has `handle` take each message until the thread is asked to end; then `close` releases everything. */
export function serveThread<M, A>(handle: (message: M) => void, close: () => Promise<void> | void): ThreadServer<M, A> {
  const port = parentPort!;
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
