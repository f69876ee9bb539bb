/**
 * Runs the projector on a worker thread: with embedded engines it would share a processor with requests. The thread has
 * its own connections to the data folder, as another process would, and is woken at once for a waiting reader.
 */
import { type MessagePort, Worker } from 'node:worker_threads';
import { symbols, type DestinationStream, type Logger } from 'pino';
import type { Background } from '../../adapters/embedded/background.js';
import type { AppendRequest } from '../../adapters/embedded/eventStore/commit.js';
import type { Sent, SharedCommits } from '../../adapters/embedded/eventStore/commitLink.js';
import { after, endTimer, type Timer } from '../../lib/world.js';
import type { FollowerHealth, FollowerRun, Followers, RestartOptions } from '../../runtime/supervision/followers.js';
import type { TreeSettings } from '../tree.js';
import type { RunningProjector } from './inProcess.js';

export interface ProjectorThreadData {
  /** The data folder, whose files the main thread has open, too. */
  readonly dataDir: string;
  /** The key store's setting; it and the master keys open personal data. */
  readonly keysUrl?: string | undefined;
  readonly masterKeys?: readonly string[] | undefined;
  /** Settings of the tree over the log. */
  readonly tree: TreeSettings;
  readonly sandbox?: boolean;
  /** See `LeaseOptions.holder`. A new thread with the same name takes over a dead one's lease at once. */
  readonly holder: string;
  /** pino's name of the lowest logged level. */
  readonly level: string;
  readonly version: string;
  /** Number that log lines name: see `LoggerSettings.processNumber`. */
  readonly processNumber?: number | undefined;
  /** The way to the process's thread for work that no request waits for (`openBackground`). */
  readonly background?: MessagePort | undefined;
}

/** `poll`: look for requests of maintenance at once. An object is what became of appends. */
export type ToProjectorThread = 'poll' | 'close' | { readonly id: number; readonly outcomes: Sent };
/** A log line, the health of the thread's followers, or appends that the process is to commit. */
export type FromProjectorThread =
  string | readonly FollowerHealth[] | { readonly id: number; readonly appends: readonly AppendRequest[] };

export interface ThreadProjectorOptions extends Omit<ProjectorThreadData, 'level' | 'background'> {
  /** The process's logger, which also gets the thread's log lines. */
  readonly logger: Logger;
  /** The process's followers: the thread is one, and reports its own. */
  readonly followers: Followers;
  readonly background?: Pick<Background, 'share'> | undefined;
  /** Commits the thread's appends: heads of the tree. */
  readonly commits: Pick<SharedCommits, 'commit'>;
  readonly script?: URL;
  /**
   * The first and the longest pause before a dead thread is replaced (`followers.ts`), in milliseconds. Default 0.1 to
   * 30 s, since a thread takes time to load.
   */
  readonly restartMs?: RestartOptions['restartMs'];
  /** Milliseconds after which a closing thread is terminated; default 5 s. */
  readonly endMs?: number;
}

const RESTART_MS = [100, 30_000] as const;
const END_MS = 5_000;
/** Health of the thread's followers until a thread has posted it. */
const PARTS: readonly FollowerHealth[] = ['projector', 'rebuilds', 'tree'].map((part) => ({
  part,
  failing: false,
  failures: 0,
  ...(part === 'tree' ? { aside: true } : {}),
}));

/**
 * Starts the thread. A dead thread is logged and replaced; events that were not stored are folded again. `close`
 * rejects if the thread fails to end.
 */
export function projectOnThread({
  logger,
  followers,
  background,
  commits,
  script = new URL('./projectorThread.js', import.meta.url),
  restartMs = RESTART_MS,
  endMs = END_MS,
  ...data
}: ThreadProjectorOptions): Required<RunningProjector> {
  const lines = (logger as Logger & { readonly [symbols.streamSym]: DestinationStream })[symbols.streamSym];
  let lastHealth: readonly FollowerHealth[] = PARTS;
  followers.include(() => lastHealth);

  let failure: Error | undefined;
  let poll: () => void = () => undefined;
  let hasLoaded: () => void = () => undefined;
  const loaded = new Promise<void>((resolve) => {
    hasLoaded = resolve;
  });

  async function commitFor(
    thread: Worker,
    { id, appends }: { readonly id: number; readonly appends: readonly AppendRequest[] },
  ): Promise<void> {
    const outcomes = await commits.commit(appends);
    thread.postMessage({ id, outcomes } satisfies ToProjectorThread);
  }

  async function runThread({ signal, well }: FollowerRun): Promise<void> {
    const port = background?.share();
    const workerData: ProjectorThreadData = { ...data, level: logger.level, background: port };
    const transferList = port === undefined ? [] : [port];
    const thread = new Worker(script, { name: 'projector', workerData, transferList });
    let cause: unknown;
    let late: Timer | undefined;
    let brokenOff = false;
    thread.on('message', (message: FromProjectorThread) => {
      if (typeof message === 'string') {
        lines.write(message);
        return;
      }
      if ('appends' in message) {
        void commitFor(thread, message);
        return;
      }
      hasLoaded();
      lastHealth = message;
      well();
    });
    thread.on('error', (error: unknown) => (cause = error));
    const end = (): void => {
      thread.postMessage('close' satisfies ToProjectorThread);
      late = after(endMs, () => {
        brokenOff = true;
        void thread.terminate();
      });
    };
    signal.addEventListener('abort', end);
    poll = () => thread.postMessage('poll' satisfies ToProjectorThread);
    const code = await new Promise<number>((resolve) => thread.once('exit', resolve));
    signal.removeEventListener('abort', end);
    endTimer(late);
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
    poll: () => poll(),
    async close() {
      await follower.close();
      if (failure !== undefined) throw failure;
    },
  };
}
