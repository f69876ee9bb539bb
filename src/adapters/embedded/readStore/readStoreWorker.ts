import { workerData } from 'node:worker_threads';
import { checkpointer } from '../checkpointer.js';
import { guardWrites } from '../openedFiles.js';
import { serveThread, type ThreadData } from '../thread.js';
import { openWriter } from './file.js';
import type { Answer, Numbered } from './messages.js';
import { createWriter } from './writer.js';

const data = workerData as ThreadData;
const database = openWriter(data.file);
const guard = guardWrites(database, data.file, data.opened);
const checkpoints = checkpointer(database, data);

const thread = serveThread<readonly Numbered[], readonly Answer[]>(
  (requests) => writer.run(requests),
  async () => {
    guard.close();
    await checkpoints.close();
    database.close();
  },
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
