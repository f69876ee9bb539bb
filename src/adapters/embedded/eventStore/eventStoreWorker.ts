/** Writes the event log on its own thread, so that requests never block on an fsync. */
import { workerData } from 'node:worker_threads';
import { refuseOtherRelease } from '../../../lib/version.js';
import { moveNow } from '../checkpoint.js';
import { checkpointer } from '../checkpointer.js';
import { guardWrites } from '../openedFiles.js';
import { serveThread, type ThreadData } from '../thread.js';
import { type AppendOutcome, type AppendRequest, GROUP, groupCommit, sizeOf } from './commit.js';
import { openEventLog } from './log.js';

/** Pages written between checkpoints. Inner pages of the index are written often, but moved once per checkpoint. */
const PAGES = 4_000;
/** WAL length in pages from which the next commit moves the pages itself, when the checkpointer can't keep up. */
const MOST_PAGES = 10_000;
const PAGE_BYTES = 4_096;
const INNER_PAGES = 4;

function serve(data: ThreadData): void {
  const { file, version } = data;
  refuseOtherRelease(version);
  const database = openEventLog(file, { openElsewhere: true });
  // A larger cache costs more than it saves: SQLite walks all cached pages at the commit after an index page was split.
  database.pragma('cache_size = -4000');
  // A group's pages stay in memory until its commit.
  database.pragma('cache_spill = OFF');
  database.pragma(`wal_autocheckpoint = ${MOST_PAGES}`);
  database.pragma('journal_size_limit = 67108864');
  const guard = guardWrites(database, data);
  const commitGroup = groupCommit(database, file, { guard });
  const checkpoints = checkpointer(database, data);
  let written = 0;

  async function close(): Promise<void> {
    guard.close();
    await checkpoints.close();
    // Pages are moved without waiting for readers: the last connection to the file moves the rest.
    moveNow(database);
    database.close();
  }

  const thread = serveThread<readonly AppendRequest[], readonly AppendOutcome[]>((first) => {
    const group = [...first];
    let bytes = totalSize(first);
    while (group.length < GROUP.appends && bytes < GROUP.bytes) {
      const next = thread.receive();
      if (next === undefined) break;
      group.push(...next);
      bytes += totalSize(next);
    }
    thread.answer(commitGroup(group));
    written += pagesOf(group.length, bytes);
    if (written < PAGES || thread.closing()) return;
    written = 0;
    checkpoints.move();
  }, close);
  thread.ready();
}

/** Estimated pages written: an index page for each append, the events, and inner pages. */
function pagesOf(appends: number, bytes: number): number {
  return appends + bytes / PAGE_BYTES + INNER_PAGES;
}

function totalSize(appends: readonly AppendRequest[]): number {
  return appends.reduce((size, [, , , fields]) => size + sizeOf(fields), 0);
}

serve(workerData as ThreadData);
