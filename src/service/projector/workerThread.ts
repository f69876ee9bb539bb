/**
 * The projector on a worker thread: on embedded engines it would share a processor with requests. The thread has its
 * own connections to the data folder, like another process, and is signalled at once when a reader waits for it.
 */
import { Worker } from 'node:worker_threads';
import { symbols, type DestinationStream, type Logger } from 'pino';
import type { FollowerHealth, FollowerRun, Followers, RestartOptions } from '../../runtime/supervision/followers.js';
import type { RunningProjector } from './inProcess.js';

export interface ProjectorThreadData {
  /** Its files are open in this process. */
  readonly dataDir: string;
  /**
   * See `LeaseOptions.holder`. The next thread has the same name, and so takes over the lease of a dead one at once.
   */
  readonly holder: string;
  /** The lowest level that is logged, in pino's words. */
  readonly level: string;
  readonly version: string;
}

export type FromProjectorThread = string | readonly FollowerHealth[];

export interface ThreadProjectorOptions extends Omit<ProjectorThreadData, 'level'> {
  /** Lines of the thread's log go where this logger's lines go. */
  readonly logger: Logger;
  /** Of this process: the thread is one, and has some of its own. */
  readonly followers: Followers;
  readonly script?: URL;
  /**
   * The first and the longest pause before a dead thread is replaced, in ms; see `followers.ts`. Default 0.1 to 30 s,
   * since a thread takes time to load.
   */
  readonly restartMs?: RestartOptions['restartMs'];
  /** The longest wait for its end before it is terminated, in ms; default 5 s. */
  readonly endMs?: number;
}

export interface ThreadProjector extends RunningProjector {
  /** Resolves when the first thread has loaded everything and works, or has ended. */
  readonly loaded: Promise<void>;
}

const RESTART_MS = [100, 30_000] as const;
const END_MS = 5_000;
/** Until a thread has posted its health. */
const PARTS: readonly FollowerHealth[] = ['projector', 'rebuilds'].map((part) => ({
  part,
  failing: false,
  failures: 0,
}));

/**
 * Starts it. A thread that dies is logged and replaced: events that it had folded but not stored are folded again.
 * `close` rejects when the thread did not end well.
 */
export function projectOnThread({
  logger,
  followers,
  script = new URL('./projectorThread.js', import.meta.url),
  restartMs = RESTART_MS,
  endMs = END_MS,
  ...data
}: ThreadProjectorOptions): ThreadProjector {
  const lines = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym] as DestinationStream;
  const workerData: ProjectorThreadData = { ...data, level: logger.level };
  let lastHealth: readonly FollowerHealth[] = PARTS;
  followers.include(() => lastHealth);

  let failure: Error | undefined;
  let hasLoaded: () => void = () => undefined;
  const loaded = new Promise<void>((resolve) => {
    hasLoaded = resolve;
  });

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
      hasLoaded();
      lastHealth = message;
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
    lastHealth = PARTS;
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
