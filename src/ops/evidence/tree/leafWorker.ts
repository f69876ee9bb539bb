/** Program of the thread that `leafBatches.ts` starts. */
import { parentPort, workerData } from 'node:worker_threads';
import type { LeafRules } from '../format/eventLeaf.js';
import { leavesOf } from '../tree/leaves.js';
import { hashesOf, type SentTexts, textsOf } from './leafBatches.js';

const port = parentPort!;
const leaves = leavesOf(workerData as LeafRules);

port.on('message', (sent: SentTexts) => {
  const hashes = hashesOf(textsOf(sent), leaves.hashTexts);
  port.postMessage(hashes, [hashes.buffer]);
});
