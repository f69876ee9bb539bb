/** The writer's thread. It answers in the order it commits, and ends when it is asked to close. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { checkpointer } from '../checkpointer.js';
import { guardWrites } from '../openedFiles.js';
import type { ThreadData } from '../thread.js';
import { openWriter } from './file.js';
import type { FromWriter, ToWriter } from './messages.js';
import { createWriter, type WriterPort } from './writer.js';

const port = parentPort;
if (port === null) throw new Error('readStoreWorker runs as a worker thread only');
const data = workerData as ThreadData;
const database = openWriter(data.file);
const guard = guardWrites(database, data.file, data.opened);
const checkpoints = checkpointer(database, data);
let closing = false;

const asked: WriterPort = {
  receive() {
    const requests = [];
    for (let received = receiveMessageOnPort(port); received !== undefined; received = receiveMessageOnPort(port)) {
      requests.push(...accept(received.message as ToWriter));
    }
    return requests;
  },
  answer(answers) {
    port.postMessage(answers satisfies FromWriter);
  },
  checkpoint: checkpoints.begin,
};
const writer = createWriter(database, asked, { guard });

const close = async (): Promise<void> => {
  guard.close();
  await checkpoints.close();
  database.close();
  port.close();
};

port.on('message', (message: ToWriter) => {
  writer.run(accept(message));
  if (closing) void close();
});
void checkpoints.loaded.then(() => port.postMessage('ready' satisfies FromWriter));

function accept(message: ToWriter) {
  if (message !== 'close') return message;
  closing = true;
  return [];
}
