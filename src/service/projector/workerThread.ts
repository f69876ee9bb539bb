/**
 * The role `projector` on a thread of its own, beside the one that answers requests: on embedded engines both would
 * have the same processor do their reading, folding and packing. The thread has its own connections to the data folder,
 * as another process would have, and hears at once when somebody waits for it.
 */
import { Worker } from 'node:worker_threads';
import { symbols, type DestinationStream, type Logger } from 'pino';
import type { FollowerHealth, FollowerRun, Followers, RestartOptions } from '../../runtime/supervision/followers.js';
import type { Projecting } from './inProcess.js';

/** What the thread is started with. */
export interface ProjectorThreadData {
  /** The data folder; its files are open in this process. */
  readonly dataDir: string;
  /**
   * See `LeaseOptions.holder`. One that follows another has its name, so that it has the lease of the one that died at
   * once.
   */
  readonly holder: string;
  /** The lowest level that is logged, in pino's words. */
  readonly level: string;
  /** The service's version. */
  readonly version: string;
}

/** What the thread posts: a line of its log, or how its followers fare. */
export type FromProjectorThread = string | readonly FollowerHealth[];

/** What it needs. */
export interface BesideOptions extends Omit<ProjectorThreadData, 'level'> {
  /** What the thread logs goes where this logger's lines go. */
  readonly logger: Logger;
  /** The followers of this process: the thread is one, and has some of its own. */
  readonly followers: Followers;
  /** The thread's program; default the projector's. */
  readonly script?: URL;
  /**
   * How long after a thread has died another is started, in ms: first and at most; see `followers.ts`. Default 0.1 to
   * 30 s: a thread takes time to load.
   */
  readonly restartMs?: RestartOptions['restartMs'];
  /** How long its end is waited for before it is broken off, in ms; default 5 s. */
  readonly endMs?: number;
}

/** The role on a thread of its own. */
export interface Beside extends Projecting {
  /**
   * Resolves when the first thread works, and has loaded everything that it will need; or has ended, and another is to
   * be started.
   */
  readonly loaded: Promise<void>;
}

const RESTART_MS = [100, 30_000] as const;
const END_MS = 5_000;
/** The followers of a thread that has not said how they fare. */
const PARTS: readonly FollowerHealth[] = ['projector', 'rebuilds'].map((part) => ({
  part,
  failing: false,
  failures: 0,
}));

/**
 * Begins. A thread that dies is told of in the log and followed by another: what it had folded and not stored is folded
 * again. Closing fails when the thread did not end well: what it had not stored is folded by whoever comes next.
 */
export function projectBeside({
  logger,
  followers,
  script = new URL('./projectorThread.js', import.meta.url),
  restartMs = RESTART_MS,
  endMs = END_MS,
  ...data
}: BesideOptions): Beside {
  const lines = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym] as DestinationStream;
  const workerData: ProjectorThreadData = { ...data, level: logger.level };
  /** Of the thread's own followers, as it said last. */
  let told: readonly FollowerHealth[] = PARTS;
  followers.include(() => told);

  /** Why it did not end well when it was told to, if so. */
  let failure: Error | undefined;
  let hasLoaded: () => void = () => undefined;
  const loaded = new Promise<void>((resolve) => {
    hasLoaded = resolve;
  });

  /** Runs one thread to its end. @throws what it died of */
  async function runThread({ signal, well }: FollowerRun): Promise<void> {
    const thread = new Worker(script, { workerData });
    let cause: unknown;
    let late: NodeJS.Timeout | undefined;
    let brokenOff = false;
    thread.on('message', (message: FromProjectorThread) => {
      if (typeof message === 'string') {
        lines.write(message);
        return;
      }
      // That it says for the first time once it works.
      hasLoaded();
      told = message;
      well();
    });
    thread.on('error', (error: unknown) => (cause = error));
    const end = (): void => {
      thread.postMessage('close');
      late = setTimeout(() => {
        brokenOff = true;
        void thread.terminate();
      }, endMs);
    };
    signal.addEventListener('abort', end);
    const code = await new Promise<number>((resolve) => thread.once('exit', resolve));
    signal.removeEventListener('abort', end);
    clearTimeout(late);
    told = PARTS;
    if (!signal.aborted) throw cause ?? new Error(`the projector's thread ended with ${code}`);
    if (brokenOff) failure = new Error(`the projector's thread did not end within ${endMs} ms`);
    else if (cause !== undefined || code !== 0)
      failure = new Error(`the projector's thread ended with ${code}`, { cause });
  }

  const follower = followers.start("the projector's thread", async (run) => runThread(run).finally(hasLoaded), {
    restartMs,
  });
  return {
    loaded,
    async close() {
      await follower.close();
      if (failure !== undefined) throw failure;
    },
  };
}
