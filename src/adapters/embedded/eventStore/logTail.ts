import { type FSWatcher, watch } from 'node:fs';
import { everyBeats } from '../../../lib/async/beats.js';

/**
 * Milliseconds between polls: appends of other processes must be noticed within 50. A projector on a worker thread
 * polls too, unless a reader waits for it (`signals.ts`): several groups of appends are cheaper to fold at once.
 */
const POLL_MS = 20;
/** Milliseconds without growth after which the WAL is watched; after as many more, polls are rare. */
const QUIET_MS = 1_000;
/** Milliseconds between polls while the WAL is watched. */
const WATCHED_POLL_MS = 1_000;

export interface LogTail {
  /**
   * Resolves when the log grows past `position`, the signal aborts, the tail is closed, or the log's end can't be read.
   * @param own only this thread has appended lately: skips reading the log's end
   */
  past(position: number, signal: AbortSignal | undefined, own?: boolean): Promise<void>;
  grew(position: number): void;
  poll(): void;
  close(): void;
}

export interface LogTailOptions {
  /** The log's WAL; absent: it is not watched, so a log at rest is polled as often as one that grows. */
  readonly wal?: string | undefined;
  readonly quietMs?: number;
  readonly watchedPollMs?: number;
}

/** What is waited for, and how growth is noticed in the meantime. */
interface State {
  readonly end: () => number;
  readonly quietMs: number;
  readonly watchedPollMs: number;
  /** Waiting readers, with the position that each waits for the log to pass. */
  readonly waiting: Map<() => void, number>;
  /** The highest position that an append of this thread is known to have. */
  grown: number;
  closed: boolean;
  /** `undefined`: it can't be watched. */
  wal: string | undefined;
  /** Ends the polls; `undefined`: there are none. */
  endPolls: (() => void) | undefined;
  watcher: FSWatcher | undefined;
  /** `performance.now()` when the log last grew or its WAL was written, or when the polls began. */
  quietSince: number;
}

/**
 * Watches the log's end. Appends of this thread wake waiting readers at once, other appends by polling, or by a write
 * to the WAL after a while without appends. Keeps no process alive.
 */
export function watchLogTail(
  end: () => number,
  { wal, quietMs = QUIET_MS, watchedPollMs = WATCHED_POLL_MS }: LogTailOptions = {},
): LogTail {
  const state: State = {
    end,
    quietMs,
    watchedPollMs,
    waiting: new Map(),
    grown: 0,
    closed: false,
    // Elsewhere writes to an open file are reported late, or not at all.
    wal: process.platform === 'linux' ? wal : undefined,
    endPolls: undefined,
    watcher: undefined,
    quietSince: 0,
  };
  const { waiting } = state;

  return {
    async past(position, signal, own = false) {
      if (state.closed || signal?.aborted || state.grown > position || (!own && end() > position)) return;
      await new Promise<void>((resolve) => {
        function wake(): void {
          waiting.delete(wake);
          signal?.removeEventListener('abort', wake);
          if (waiting.size === 0) rest(state);
          resolve();
        }
        waiting.set(wake, position);
        signal?.addEventListener('abort', wake);
        if (state.endPolls === undefined) pollOften(state);
      });
    },
    grew(position) {
      state.grown = Math.max(state.grown, position);
      wakeBefore(state, position);
    },
    poll: () => poll(state),
    close() {
      state.closed = true;
      for (const wake of waiting.keys()) wake();
    },
  };
}

function wakeBefore(state: State, position: number): void {
  for (const [wake, after] of state.waiting) {
    if (position <= after) continue;
    state.quietSince = performance.now();
    wake();
  }
}

function poll(state: State): void {
  if (state.waiting.size === 0) return;
  let position: number;
  try {
    position = state.end();
  } catch {
    position = Number.POSITIVE_INFINITY;
  }
  wakeBefore(state, position);
}

function rest(state: State): void {
  state.endPolls?.();
  state.endPolls = undefined;
  state.watcher?.close();
  state.watcher = undefined;
}

function pollOften(state: State): void {
  rest(state);
  state.quietSince = performance.now();
  const timer = setInterval(() => {
    const quiet = performance.now() - state.quietSince;
    if (quiet >= state.quietMs && state.watcher === undefined) watchWal(state);
    // A commit that was written before the watch began, and is visible after it, is found by polling on for a while.
    if (quiet >= 2 * state.quietMs && state.watcher !== undefined) pollSeldom(state);
    poll(state);
  }, POLL_MS).unref();
  state.endPolls = () => clearInterval(timer);
}

function pollSeldom(state: State): void {
  state.endPolls?.();
  state.endPolls = everyBeats(state.watchedPollMs, () => poll(state));
}

/** Polls often again once the WAL is written. */
function watchWal(state: State): void {
  if (state.wal === undefined) return;
  try {
    const watcher = watch(state.wal, { persistent: false });
    state.watcher = watcher;
    watcher.on('change', () => {
      if (state.watcher !== watcher) return;
      pollOften(state);
      poll(state);
    });
    watcher.on('error', () => notWatched(state));
  } catch {
    notWatched(state);
  }
}

/** The system's watches are used up, for example. */
function notWatched(state: State): void {
  state.wal = undefined;
  if (state.endPolls !== undefined) pollOften(state);
}
