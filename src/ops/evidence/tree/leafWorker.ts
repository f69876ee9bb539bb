/** Program of the thread that `leafBatches.ts` starts. */
import { parentPort, workerData } from 'node:worker_threads';
import { refuseOtherRelease } from '../../../lib/version.js';
import { leavesOf } from '../tree/leaves.js';
import { hashesOf, type LeafThreadData, type SentTexts, textsOf } from './leafBatches.js';

const port = parentPort!;
const { rules, version } = workerData as LeafThreadData;
// Leaves of another release might count as altered events.
refuseOtherRelease(version);
const leaves = leavesOf(rules);

port.on('message', (sent: SentTexts) => {
  const hashes = hashesOf(textsOf(sent), leaves.hashTexts);
  port.postMessage(hashes, [hashes.buffer]);
});
