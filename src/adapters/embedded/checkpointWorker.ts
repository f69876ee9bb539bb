import { workerData } from 'node:worker_threads';
import { moveNow } from './checkpoint.js';
import { Sqlite } from './driver.js';
import { serveThread, type ThreadData } from './thread.js';

const FEW_PAGES = 64;
const PASSES = 8;

const database = new Sqlite((workerData as ThreadData).file, { fileMustExist: true, timeout: 0 });
// SQLite opens the WAL by name at the first read, so this read opens the present WAL.
database.pragma('schema_version');

function move(): void {
  let before = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    const moved = moveNow(database);
    if (moved === undefined || moved.checkpointed < moved.log || moved.log - before <= FEW_PAGES) return;
    before = moved.log;
  }
}

const thread = serveThread<'move', 'moved'>(
  () => {
    move();
    thread.answer('moved');
  },
  () => void database.close(),
);
thread.ready();
