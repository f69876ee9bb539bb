import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable, Worker } from 'node:worker_threads';
import { deferred } from '../../lib/async/deferred.js';
import { VERSION } from '../../lib/version.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type OpenedFiles, openedFiles } from './openedFiles.js';

export interface ThreadData {
  readonly file: string;
  readonly opened: OpenedFiles;
  readonly longLived: boolean;
  /** Whether another writer of this process watches the file while nothing is written. */
  readonly openElsewhere: boolean;
  /** The way to the thread that moves the pages of the file's WAL; `undefined`: the writer starts one. */
  readonly checkpoints?: MessagePort | undefined;
  /** Release of the process. */
  readonly version: string;
}

export function threadData(file: string, { longLived = false, openElsewhere = false } = {}): ThreadData {
  return { file, opened: openedFiles(file), longLived, openElsewhere, version: VERSION };
}

/** Starts the thread that writes a file. `background` moves the pages of the file's WAL. */
export function writerThread(
  script: URL,
  name: string,
  data: ThreadData,
  background: { checkpointsOf(file: string): MessagePort } | undefined,
): Worker {
  const checkpoints = background?.checkpointsOf(data.file);
  const workerData: ThreadData = { ...data, checkpoints };
  return new Worker(script, { name, workerData, transferList: checkpoints === undefined ? [] : [checkpoints] });
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
  keepAlive(required: boolean): void;
  /** Resolves when a thread started at once has loaded or ended. The process lives until then. */
  readonly loaded: Promise<void>;
  /** Restarts a thread that has died. @throws UnavailableError until it works */
  ping(): void;
  /** Ends the thread after its earlier messages. No message may follow. */
  close(): Promise<void>;
}

/** A worker, or a port: a thread that serves several ports closes one where a worker of its own would end. */
export type Thread = Worker | MessagePort;

interface ThreadClientOptions<A> {
  /** The way to a thread that runs already, in place of the first one to be started. */
  readonly first?: MessagePort | undefined;
  readonly spawn: () => Thread;
  /** Whether the thread is started before its first message; `'soon'`: some seconds later. */
  readonly atOnce: boolean | 'soon';
  readonly ended: (cause: Error | undefined) => string;
  readonly onAnswer: (answer: A) => void;
  /** Called when the thread has ended, also after `close`: open messages get no answer any more. */
  readonly onEnd: (failure: UnavailableError) => void;
}

/** A thread as its client knows it. */
interface ClientState<A> {
  readonly options: ThreadClientOptions<A>;
  /** As in the options, until it is used. */
  first: MessagePort | undefined;
  /** The running thread; `undefined`: there is none. */
  worker: Thread | undefined;
  /** Whether the running thread has loaded. */
  ready: boolean;
  /** Whether a thread that was started at once has neither loaded nor ended. */
  loading: boolean;
  /** What `keepAlive` was last called with; initially false. */
  keepsAlive: boolean;
  closing: boolean;
  /** The death of the last thread, until another one answers. */
  failure: UnavailableError | undefined;
  /** Resolves `ThreadClient.loaded`. */
  readonly hasLoaded: () => void;
}

export function threadClient<M, A>(options: ThreadClientOptions<A>): ThreadClient<M> {
  const { atOnce } = options;
  const { promise: loaded, resolve: hasLoaded } = deferred<void>();
  const state: ClientState<A> = {
    options,
    first: options.first,
    worker: undefined,
    ready: false,
    loading: atOnce === true,
    keepsAlive: false,
    closing: false,
    failure: undefined,
    hasLoaded,
  };
  if (atOnce === true) running(state);
  else hasLoaded();
  const soon = atOnce === 'soon' ? setTimeout(running, SOON_MS, state).unref() : undefined;
  return {
    loaded,
    send: (message, transfer = []) => running(state).postMessage(message, transfer),
    start: () => void running(state),
    state: () => (state.worker === undefined ? 'none' : state.ready ? 'ready' : 'loading'),
    keepAlive(required) {
      if (required === state.keepsAlive) return;
      state.keepsAlive = required;
      hold(state);
    },
    ping() {
      if (state.failure === undefined) return;
      running(state);
      throw state.failure;
    },
    async close() {
      clearTimeout(soon);
      await endThread(state);
    },
  };
}

/** The running thread, started where there is none. */
function running<A>(state: ClientState<A>): Thread {
  if (state.worker !== undefined) return state.worker;
  const { spawn, ended, onAnswer, onEnd } = state.options;
  const started = state.first ?? spawn();
  state.first = undefined;
  let cause: Error | undefined;
  started.on('message', (message: typeof READY | A) => {
    state.failure = undefined;
    if (message !== READY) return onAnswer(message);
    state.ready = true;
    return endLoading(state);
  });
  started.on('error', (error: Error) => {
    cause = error;
  });
  started.on(endOf(started), () => {
    state.worker = undefined;
    state.ready = false;
    state.failure = new UnavailableError(ended(cause), {
      outcomeUnknown: true,
      cause,
      publicReason: 'the thread that writes it has ended',
    });
    onEnd(state.failure);
    endLoading(state);
  });
  state.worker = started;
  if (!(started instanceof Worker) && isClosed(started)) setImmediate(() => started.emit('close', new Event('close')));
  hold(state);
  return started;
}

/** Whether a port's other side died before this one listened, so that no event tells of it. References the port. */
function isClosed(port: MessagePort): boolean {
  port.ref();
  // The types lack it; a closed port can't be referenced.
  return !(port as MessagePort & { hasRef(): boolean }).hasRef();
}

/** Lets the thread keep the process alive while it loads or closes, or its client demands it. */
function hold<A>({ worker, keepsAlive, loading, closing }: ClientState<A>): void {
  if (keepsAlive || loading || closing) worker?.ref();
  else worker?.unref();
}

function endLoading<A>(state: ClientState<A>): void {
  if (!state.loading) return;
  state.loading = false;
  hold(state);
  state.hasLoaded();
}

async function endThread<A>(state: ClientState<A>): Promise<void> {
  const last = state.worker;
  if (last === undefined) return;
  state.closing = true;
  hold(state);
  await new Promise((resolve) => {
    last.once(endOf(last), resolve);
    last.postMessage(CLOSE);
  });
}

function endOf(thread: Thread): 'exit' | 'close' {
  return thread instanceof Worker ? 'exit' : 'close';
}

interface ThreadServer<M, A> {
  ready(): void;
  answer(answer: A): void;
  receive(): M | undefined;
  closing(): boolean;
}

/**
 * Serves a thread's messages. When the client closes, or its thread has died, calls `close` after the current message.
 */
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
    setImmediate(() => void end());
    return undefined;
  }

  port.on('message', (message: M | typeof CLOSE) => {
    const accepted = accept(message);
    if (accepted !== undefined) handle(accepted);
  });
  port.on('close', () => {
    if (!closing) void close();
    closing = true;
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
