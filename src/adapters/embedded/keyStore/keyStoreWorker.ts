/** The thread that writes the key store. */
import { workerData } from 'node:worker_threads';
import { refuseOtherRelease } from '../../../lib/version.js';
import { guardWrites } from '../openedFiles.js';
import { serveThread, type ThreadData } from '../thread.js';
import type { Answer } from '../writerClient.js';
import { openWriter } from './file.js';
import type { NumberedKeyRequest } from './messages.js';
import { createKeyWriter } from './writer.js';

const data = workerData as ThreadData;
refuseOtherRelease(data.version);
const database = openWriter(data.file);
const guard = guardWrites(database, data);

const thread = serveThread<readonly NumberedKeyRequest[], readonly Answer[]>(
  (requests) => write(requests),
  () => {
    guard.close();
    database.close();
  },
);
const write = createKeyWriter(database, {
  receive() {
    const requests: NumberedKeyRequest[] = [];
    for (let more = thread.receive(); more !== undefined; more = thread.receive()) requests.push(...more);
    return requests;
  },
  answer: thread.answer,
  guard,
});
thread.ready();
