/** Moves WAL pages on a worker thread: moving thousands takes tens of milliseconds, which writes would wait for. */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';
import { type ThreadData, threadClient } from './thread.js';

export interface Checkpointer {
  /** Does nothing while a move runs. Never throws. */
  move(): void;
  /** Ends the thread after its current work; the connection must stay open until then. */
  close(): Promise<void>;
}

/**
 * SQLite restarts the WAL only when nothing was added after the moved pages. Under load only the writer's own thread
 * can ensure that, so the writing connection `database` moves the rest between its transactions. A thread that dies is
 * a warning on standard error, and the next `move` starts another.
 */
export function checkpointer(
  database: Database,
  data: ThreadData,
  script = new URL('./checkpointWorker.js', import.meta.url),
): Checkpointer {
  let moving = false;
  const thread = threadClient<'move', 'moved'>({
    spawn: () => new Worker(script, { name: 'WAL', workerData: data }),
    atOnce: data.longLived && 'soon',
    ended: () => `the thread that moves the WAL of ${data.file} ended`,
    onAnswer() {
      moving = false;
      moveNow(database);
    },
    // No write fails: SQLite moves a long WAL at the writer's next commit.
    onEnd({ cause }) {
      moving = false;
      if (cause instanceof Error) process.emitWarning(cause);
    },
  });

  return {
    move() {
      if (moving) return;
      moving = true;
      thread.send('move');
    },
    close: thread.close,
  };
}
