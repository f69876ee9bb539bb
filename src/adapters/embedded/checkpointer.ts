/** Has WAL pages moved by another thread: moving thousands takes tens of milliseconds, which writes would wait for. */
import type { Database } from 'better-sqlite3';
import { openBackground } from './background.js';
import { moveNow } from './checkpoint.js';
import { type ThreadData, threadClient } from './thread.js';

export interface Checkpointer {
  /** Does nothing while a move runs. Never throws. */
  move(): void;
  /** Ends after the current move; the connection must stay open until then. */
  close(): Promise<void>;
}

/**
 * SQLite restarts the WAL only when nothing was added after the moved pages. Under load only the writer's own thread
 * can ensure that, so the writing connection `database` moves the rest between its transactions. Where the thread of
 * `data.checkpoints` has died, or there is none, the next `move` starts one. A death is a warning on standard error.
 */
export function checkpointer(database: Database, data: ThreadData, script?: URL): Checkpointer {
  const { file, checkpoints: given } = data;
  let moving = false;
  const warn = (error: Error): void => process.emitWarning(error);
  const own = openBackground({ onDeath: warn, atOnce: false, ...(script === undefined ? {} : { script }) });
  const thread = threadClient<'move', 'moved'>({
    first: given,
    spawn: () => own.checkpointsOf(file),
    atOnce: given !== undefined,
    ended: () => `the thread that moves the WAL of ${file} ended`,
    onAnswer() {
      moving = false;
      moveNow(database);
    },
    // No write fails: SQLite moves a long WAL at the writer's next commit.
    onEnd() {
      moving = false;
    },
  });

  return {
    move() {
      if (moving) return;
      moving = true;
      thread.send('move');
    },
    async close() {
      await thread.close();
      await own.close();
    },
  };
}
