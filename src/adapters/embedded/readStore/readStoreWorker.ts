import { parentPort, workerData } from 'node:worker_threads';
import { checkpointer } from '../checkpointer.js';
import type { ThreadData } from '../thread.js';
import { serveWriter } from './serveWriter.js';

const data = workerData as ThreadData;

serveWriter(data, parentPort!, (database) => checkpointer(database, data));
