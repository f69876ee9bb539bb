/** The writer's thread. It answers in the order it commits, and ends when it is asked to close. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { checkpointer } from '../checkpointer.js';
import type { ThreadData } from '../thread.js';
import { openWriter } from './file.js';
import type { Answer, ToWriter } from './messages.js';
import { createWriter } from './writer.js';

const port = parentPort;
if (port === null) throw new Error('readStoreWorker runs as a worker thread only');
const { file } = workerData as ThreadData;
const database = openWriter(file);
const checkpoints = checkpointer(database, file);
let closing = false;

const writer = createWriter(database, {
  receive() {
    const requests = [];
    for (let received = receiveMessageOnPort(port); received !== undefined; received = receiveMessageOnPort(port)) {
      requests.push(...accept(received.message as ToWriter));
    }
    return requests;
  },
  answer(answers: readonly Answer[]) {
    port.postMessage(answers);
  },
  checkpoint: checkpoints.begin,
});

const close = async (): Promise<void> => {
  await checkpoints.close();
  database.close();
  port.close();
};

port.on('message', (message: ToWriter) => {
  writer.run(accept(message));
  if (closing) void close();
});

function accept(message: ToWriter) {
  if (message !== 'close') return message;
  closing = true;
  return [];
}
