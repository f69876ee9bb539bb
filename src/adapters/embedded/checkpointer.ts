/**
 * Moves a WAL's pages into their file on a thread of its own, while the connection that writes goes on. To move
 * thousands takes tens of milliseconds, most of it the sync of the file: on the writer's own thread, everybody who is
 * to be answered would wait for that.
 */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';
import { type ThreadData, endThread, loaded } from './thread.js';

/** Has the WAL of one file moved. */
export interface Checkpointer {
  /**
   * Begins to move what stands in the WAL, unless that is under way. Throws nothing: what can't be moved now stays
   * where it is, and is moved another time.
   */
  begin(): void;
  /** Resolves when the thread has loaded everything, where it is started at once. */
  readonly loaded: Promise<void>;
  /**
   * Ends the thread, once it has moved what it is at; nothing may be begun any more. Resolves when it has ended: until
   * then the connection stays open.
   */
  close(): Promise<void>;
}

/**
 * The checkpointer of a connection that writes `file`. It works on that connection, too, between the writer's
 * transactions: only where nothing was added behind what has been moved can the WAL be written from its start again,
 * and while others write that is so only where it is moved in their stead. A thread that dies is a warning of the
 * process (on standard error), and started again by the next `begin`.
 * @param data what the thread is started with. It is started with the first `begin`, or at once where the process is
 * long-lived
 */
export function checkpointer(
  database: Database,
  data: ThreadData,
  script = new URL('./checkpointWorker.js', import.meta.url),
): Checkpointer {
  let worker: Worker | undefined;
  let moving = false;

  function start(): Worker {
    const started = new Worker(script, { workerData: data });
    started.on('message', (message: 'ready' | 'moved') => {
      if (message === 'ready') return;
      moving = false;
      moveNow(database);
    });
    // Nothing is lost with it, so that it fails nobody's write: SQLite moves a WAL that has grown long at the writer's
    // next commit. It must not go unheard, though.
    started.on('error', (error) => process.emitWarning(error));
    started.on('exit', () => {
      worker = undefined;
      moving = false;
    });
    // It alone must not keep the writer's thread alive.
    started.unref();
    return started;
  }

  if (data.longLived) worker = start();
  return {
    loaded: loaded(worker),
    begin() {
      if (moving) return;
      moving = true;
      worker ??= start();
      worker.postMessage('move');
    },
    async close() {
      if (worker !== undefined) await endThread(worker);
    },
  };
}
