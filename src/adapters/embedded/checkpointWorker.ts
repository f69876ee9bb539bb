/**
 * The thread that moves a WAL's pages into their file. It says `ready`, answers each `move` with `moved`, and ends when
 * it is asked to.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { moveNow } from './checkpoint.js';
import { Sqlite } from './driver.js';
import type { ThreadData } from './thread.js';

/**
 * What was added while pages were moved is moved as well, until it is no more than this many pages: what then is left
 * for the writer's own thread takes a moment.
 */
const FEW_PAGES = 64;
/** So often at most: others may write as fast as pages are moved. */
const PASSES = 8;

const port = parentPort!;
const database = new Sqlite((workerData as ThreadData).file, { fileMustExist: true, timeout: 0 });
// With the first read SQLite opens the WAL: by its name, so now, while it has one.
database.pragma('schema_version');

function move(): void {
  let before = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    const moved = moveNow(database);
    if (moved === undefined || moved.checkpointed < moved.log || moved.log - before <= FEW_PAGES) return;
    before = moved.log;
  }
}

port.on('message', (message: 'move' | 'close') => {
  if (message === 'move') {
    move();
    port.postMessage('moved');
    return;
  }
  database.close();
  port.close();
});
port.postMessage('ready');
