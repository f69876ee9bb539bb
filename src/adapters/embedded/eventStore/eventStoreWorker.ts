/** The thread that writes the event log, so that no fsync is waited for where requests are answered. */
import type { MessagePort } from 'node:worker_threads';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { moveNow } from '../checkpoint.js';
import { checkpointer } from '../checkpointer.js';
import { guardWrites } from '../openedFiles.js';
import type { ThreadData } from '../thread.js';
import type { AppendOutcome, AppendRequest } from './commit.js';
import { GROUP, groupCommit, sizeOf } from './commit.js';
import { openEventLog } from './log.js';

/** Appends, or the wish that the thread ends once all before it are answered. */
export type WriterMessage = readonly AppendRequest[] | 'close';

/** `ready` once, then the answers to one group, in one message. */
export type WriterAnswer = 'ready' | readonly AppendOutcome[];

/**
 * The WAL is moved into the file after about so many pages. Pages of many streams are touched at random, the inner
 * pages of the index again and again: rarely, then each of these is moved once.
 */
const PAGES = 4_000;
/** Of so many, where the thread for that could not keep up, it is moved before the next group. */
const MOST_PAGES = 10_000;
const PAGE_BYTES = 4_096;
const INNER_PAGES = 4;

function serve(port: MessagePort, data: ThreadData): void {
  const { file, opened } = data;
  const database = openEventLog(file, { openElsewhere: true });
  // Room for the inner pages of its index. A wider cache costs more than it saves: where index pages were split, SQLite
  // walks all that are kept, at the commit that everybody waits for.
  database.pragma('cache_size = -4000');
  // A group may touch more pages than are kept: they wait in memory for its commit.
  database.pragma('cache_spill = OFF');
  database.pragma(`wal_autocheckpoint = ${MOST_PAGES}`);
  database.pragma('journal_size_limit = 67108864');
  const guard = guardWrites(database, file, opened);
  const commitGroup = groupCommit(database, file, { guard });
  const checkpoints = checkpointer(database, data);
  let written = 0;

  async function close(): Promise<void> {
    guard.close();
    await checkpoints.close();
    // Without waiting for readers: what they hold back, the last connection to the file does.
    moveNow(database);
    database.close();
    port.close();
  }

  port.on('message', (first: WriterMessage) => {
    if (first === 'close') return void close();
    const group = [...first];
    let bytes = totalSize(first);
    let closing = false;
    while (!closing && group.length < GROUP.appends && bytes < GROUP.bytes) {
      const next = receiveMessageOnPort(port) as { message: WriterMessage } | undefined;
      if (next === undefined) break;
      if (next.message === 'close') closing = true;
      else {
        group.push(...next.message);
        bytes += totalSize(next.message);
      }
    }
    port.postMessage(commitGroup(group) satisfies WriterAnswer);
    written += pagesOf(group.length, bytes);
    if (closing) void close();
    else if (written >= PAGES) {
      written = 0;
      checkpoints.begin();
    }
  });
  void checkpoints.loaded.then(() => port.postMessage('ready' satisfies WriterAnswer));
}

/**
 * About how many pages a group writes: one of the index for each append, since streams stand there at random; the
 * events; and the inner pages.
 */
function pagesOf(appends: number, bytes: number): number {
  return appends + bytes / PAGE_BYTES + INNER_PAGES;
}

function totalSize(appends: readonly AppendRequest[]): number {
  return appends.reduce((size, [, , , fields]) => size + sizeOf(fields), 0);
}

// Last, since `serve` needs all that stands above; only ever loaded as a thread.
serve(parentPort!, workerData as ThreadData);
