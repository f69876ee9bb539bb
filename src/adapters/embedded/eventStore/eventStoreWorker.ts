/** The thread that writes the event log, so that no fsync is waited for on the main thread. */
import type { MessagePort } from 'node:worker_threads';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { AppendOutcome, AppendRequest } from './commit.js';
import { GROUP, groupCommit, sizeOf } from './commit.js';
import { openEventLog } from './log.js';

/** What the thread is started with. */
export interface WriterData {
  /** The event log; another connection of the process has it open already. */
  readonly file: string;
}

/** Appends, or the wish that the thread ends once all before it are answered. */
export type WriterMessage = readonly AppendRequest[] | 'close';

/** The answers to one group, in one message. */
export type WriterAnswer = readonly AppendOutcome[];

function serve(port: MessagePort, { file }: WriterData): void {
  const database = openEventLog(file, { openElsewhere: true });
  // Room for the inner pages of its index. A wider cache costs more than it saves: where index pages were split, SQLite walks all that are kept, at the commit that everybody waits for.
  database.pragma('cache_size = -4000');
  // A group may touch more pages than are kept: they wait in memory for its commit.
  database.pragma('cache_spill = OFF');
  // Pages of many streams are touched at random: fewer, larger checkpoints.
  database.pragma('wal_autocheckpoint = 4000');
  database.pragma('journal_size_limit = 67108864');
  const commitGroup = groupCommit(database, file);

  function close(): void {
    // Without waiting for readers: what they hold back, the last connection to the file does.
    database.pragma('wal_checkpoint(PASSIVE)');
    database.close();
    port.close();
  }

  port.on('message', (first: WriterMessage) => {
    if (first === 'close') return close();
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
    if (closing) close();
  });
}

function totalSize(appends: readonly AppendRequest[]): number {
  return appends.reduce((size, [, , , fields]) => size + sizeOf(fields), 0);
}

// Last, since `serve` needs all that stands above; only ever loaded as a thread.
serve(parentPort!, workerData as WriterData);
