/**
 * The role `projector` on a thread of its own, beside the one that answers requests: on embedded engines both would have the same processor do their reading, folding and packing. The
 * thread has its own connections to the data folder, as another process would have, and hears at once when somebody waits for it.
 */
import { Worker } from 'node:worker_threads';
import { symbols, type DestinationStream, type Logger } from 'pino';
import { endThread } from '../adapters/embedded/thread.js';
import { within } from '../async/within.js';
import type { Projecting } from './here.js';

/** What the thread is started with. */
export interface ProjectorThreadData {
  /** The data folder; its files are open in this process. */
  readonly dataDir: string;
  /** See `LeaseOptions.holder`. One that follows another has its name, so that it has the lease of the one that died at once. */
  readonly holder: string;
  /** The lowest level that is logged, in pino's words. */
  readonly level: string;
  /** The service's version. */
  readonly version: string;
}

/** What it needs. */
export interface BesideOptions extends Omit<ProjectorThreadData, 'level'> {
  /** What the thread logs goes where this logger's lines go. */
  readonly logger: Logger;
  /** The thread's program; default the projector's. */
  readonly script?: URL;
  /** How long after a thread has died another is started, in ms: first and at most; doubled each time, until one has lived for longer than the most. Default a second to a minute. */
  readonly restartMs?: readonly [first: number, most: number];
  /** How long its end is waited for before it is broken off, in ms; default 5 s. */
  readonly endMs?: number;
}

const RESTART_MS = [1_000, 60_000] as const;
const END_MS = 5_000;

/**
 * Begins. A thread that dies is told of in the log and followed by another: what it had folded and not stored is folded again. Closing fails when the thread did not end well: what it had
 * not stored is folded by whoever comes next.
 * @throws Error when no thread can be started
 */
export function projectBeside({ logger, script = new URL('./projectorThread.js', import.meta.url), restartMs: [first, most] = RESTART_MS, endMs = END_MS, ...data }: BesideOptions): Projecting {
  const lines = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym] as DestinationStream;
  const workerData: ProjectorThreadData = { ...data, level: logger.level };
  let thread: Worker | undefined;
  let restart: NodeJS.Timeout | undefined;
  let wait = first;
  let closing = false;
  /** Why it did not end well, if so. */
  let failure: Error | undefined;

  function start(): void {
    const began = performance.now();
    const started = new Worker(script, { workerData });
    let cause: unknown;
    started.on('message', (line: string) => lines.write(line));
    started.on('error', (error: unknown) => {
      cause = error;
    });
    started.on('exit', (code) => {
      thread = undefined;
      if (performance.now() - began > most) wait = first;
      if (!closing) startAgain(cause);
      else if (cause !== undefined || code !== 0) failure = new Error(`the projector's thread ended with ${code}`, { cause });
    });
    thread = started;
  }

  function startAgain(cause: unknown): void {
    logger.error({ err: cause, restartMs: wait }, 'projector: its thread ended, another is started');
    restart = setTimeout(() => {
      try {
        start();
      } catch (error) {
        startAgain(error);
      }
    }, wait);
    wait = Math.min(wait * 2, most);
  }

  start();
  return {
    async close() {
      closing = true;
      clearTimeout(restart);
      if (thread === undefined) return;
      const ending = thread;
      const ended = await within(endThread(ending).then(() => true), endMs, () => false);
      if (!ended) {
        await ending.terminate();
        throw new Error(`the projector's thread did not end within ${endMs} ms`);
      }
      if (failure !== undefined) throw failure;
    },
  };
}
