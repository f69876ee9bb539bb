/**
 * The role `projector` on a thread of its own, beside the one that answers requests: on embedded engines both would have the same processor do their reading, folding and packing. The
 * thread has its own connections to the data folder, as another process would have, and hears of appends as soon as they are on disk.
 */
import { symbols, type DestinationStream, type Logger } from 'pino';
import { Worker } from 'node:worker_threads';
import { endThread } from '../adapters/embedded/thread.js';
import type { Projecting } from './here.js';

/** What the thread is started with. */
export interface ProjectorThreadData {
  /** The data folder; its files are open in this process. */
  readonly dataDir: string;
  /** See `LeaseOptions.holder`. */
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
  /** How long after its thread has died another is started, in ms; default one second. */
  readonly restartMs?: number;
}

const RESTART_MS = 1_000;

/** Begins. A thread that dies is told of in the log and followed by another: what it had folded and not stored is folded again. */
export function projectBeside({ dataDir, holder, version, logger, script = new URL('./projectorThread.js', import.meta.url), restartMs = RESTART_MS }: BesideOptions): Projecting {
  const lines = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym] as DestinationStream;
  let thread: Worker | undefined;
  let restart: NodeJS.Timeout | undefined;
  let threads = 0;
  let closing = false;

  function start(): void {
    threads += 1;
    // A thread that has died may hold the lease by its name still.
    const workerData: ProjectorThreadData = { dataDir, holder: `${holder}/${threads}`, level: logger.level, version };
    const started = new Worker(script, { workerData });
    let cause: unknown;
    started.on('message', (line: string) => lines.write(line));
    started.on('error', (error: unknown) => {
      cause = error;
    });
    started.on('exit', () => {
      thread = undefined;
      if (closing) return;
      logger.error({ err: cause, restartMs }, 'projector: its thread ended, another is started');
      restart = setTimeout(start, restartMs);
    });
    thread = started;
  }

  start();
  return {
    async close() {
      closing = true;
      clearTimeout(restart);
      if (thread !== undefined) await endThread(thread);
    },
  };
}
