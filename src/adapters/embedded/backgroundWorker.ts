/** The thread of `background.ts`. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { refuseOtherRelease } from '../../lib/version.js';
import type { BackgroundData, BackgroundRequest } from './background.js';
import { moveNow } from './checkpoint.js';
import { Sqlite } from './driver.js';
import { serveWriter } from './readStore/serveWriter.js';
import { serveThread } from './thread.js';

refuseOtherRelease((workerData as BackgroundData).version);
// The driver loads its machine code with the first database.
new Sqlite(':memory:').close();

/** Number of pages that are left to the writer's own move, which is fast then. */
const FEW_PAGES = 64;
const PASSES = 8;

/** Moves the pages of a file's WAL whenever the other side of `port` asks for it. */
function serveCheckpoints(file: string, port: MessagePort): void {
  const database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
  // SQLite opens the WAL by name at the first read, so this read opens the present WAL.
  database.pragma('schema_version');
  const thread = serveThread<'move', 'moved'>(
    () => {
      moveMost(database);
      thread.answer('moved');
    },
    () => void database.close(),
    port,
  );
  thread.ready();
}

/** Moves pages until few have been added meanwhile. */
function moveMost(database: Database): void {
  let before = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    const moved = moveNow(database);
    if (moved === undefined || moved.checkpointed < moved.log || moved.log - before <= FEW_PAGES) return;
    before = moved.log;
  }
}

function work(request: BackgroundRequest): void {
  const { kind, port } = request;
  if (kind === 'share') return serve(port);
  if (kind === 'checkpoints') return serveCheckpoints(request.file, port);
  // It moves pages by itself: no request waits for a scratch store.
  return serveWriter(request.data, port, (database) => ({
    move: () => void moveNow(database),
    close: async () => undefined,
  }));
}

function serve(from: MessagePort): void {
  const thread = serveThread<BackgroundRequest, never>(
    (request) => {
      try {
        work(request);
      } catch (error) {
        // The other work of this thread goes on.
        request.port.close();
        process.emitWarning(error as Error);
      }
    },
    () => undefined,
    from,
  );
  thread.ready();
}

serve(parentPort!);
