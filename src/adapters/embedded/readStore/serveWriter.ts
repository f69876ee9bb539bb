import type { MessagePort } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { refuseOtherRelease } from '../../../lib/version.js';
import type { Checkpointer } from '../checkpointer.js';
import { guardWrites } from '../openedFiles.js';
import { serveThread, type ThreadData } from '../thread.js';
import { openWriter } from './file.js';
import type { Answer, Numbered } from './messages.js';
import { createWriter } from './writer.js';

/**
 * Writes a read store for the other side of `port`, until that closes it. Between two transactions the thread takes what
 * comes by its other ports.
 */
export function serveWriter(
  data: ThreadData,
  port: MessagePort,
  checkpointerOf: (database: Database) => Checkpointer,
): void {
  refuseOtherRelease(data.version);
  const database = openWriter(data.file);
  const guard = guardWrites(database, data);
  const checkpoints = checkpointerOf(database);

  let next: NodeJS.Immediate | undefined;

  function work(): void {
    next = undefined;
    if (writer.work()) next = setImmediate(work);
  }

  const thread = serveThread<readonly Numbered[], readonly Answer[]>(
    (requests) => {
      writer.take(requests);
      next ??= setImmediate(work);
    },
    async () => {
      clearImmediate(next);
      while (writer.work());
      guard.close();
      await checkpoints.close();
      database.close();
    },
    port,
  );
  const writer = createWriter(
    database,
    {
      receive() {
        const requests: Numbered[] = [];
        for (let more = thread.receive(); more !== undefined; more = thread.receive()) requests.push(...more);
        return requests;
      },
      answer: thread.answer,
      checkpoint: checkpoints.move,
    },
    { guard },
  );
  thread.ready();
}
