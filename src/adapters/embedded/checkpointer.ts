/**
 * Moves a WAL's pages into their file on a worker thread, while the connection that writes goes on: moving thousands
 * takes tens of milliseconds, which appends and writes would wait for.
 */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';
import { type ThreadData, threadClient } from './thread.js';

export interface Checkpointer {
  /**
   * Moves what stands in the WAL, unless that is under way. Never throws: pages that can't be moved now are moved
   * another time.
   */
  move(): void;
  readonly loaded: Promise<void>;
  /**
   * Ends the thread after its current work; the connection stays open until then. `move` may not be called any more.
   */
  close(): Promise<void>;
}

/**
 * The checkpointer of a connection that writes `file`, between whose transactions it also works on that connection.
 * SQLite reuses the WAL from its start only when nothing was added behind the moved pages, which under load only the
 * writer's own thread can see to. A thread that dies is a warning on standard error, and the next `move` starts
 * another.
 * @param data starts the thread: with the first `move`, or at once where `longLived`
 */
export function checkpointer(
  database: Database,
  data: ThreadData,
  script = new URL('./checkpointWorker.js', import.meta.url),
): Checkpointer {
  let moving = false;
  const thread = threadClient<'move', 'moved'>({
    spawn: () => new Worker(script, { workerData: data }),
    atOnce: data.longLived,
    ended: () => `the thread that moves the WAL of ${data.file} ended`,
    onAnswer() {
      moving = false;
      moveNow(database);
    },
    // No write fails for it: SQLite moves a long WAL at the writer's next commit.
    onEnd({ cause }) {
      moving = false;
      if (cause instanceof Error) process.emitWarning(cause);
    },
  });

  return {
    loaded: thread.loaded,
    move() {
      if (moving) return;
      moving = true;
      thread.send('move');
    },
    close: thread.close,
  };
}
