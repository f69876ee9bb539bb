/** Thread that shares a sandbox's folder, and tries to claim it at the same moments as another such thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { loadConfig } from '../../../src/service/config.js';
import { sandboxFolder } from '../../../src/service/sandboxReset.js';

export interface ClaimsData {
  readonly dir: string;
  readonly rounds: number;
  /** Shared by the two threads: how often each has come to each point of a round, and how often one has claimed. */
  readonly counts: Int32Array;
}

const { dir, rounds, counts } = workerData as ClaimsData;
const folder = sandboxFolder(loadConfig({ DATA_DIR: dir, SANDBOX: '1' }));

/** Waits for the other thread to come to the same point. */
function meet(point: number, round: number): void {
  Atomics.add(counts, point, 1);
  while (Atomics.load(counts, point) < 2 * round);
}

for (let round = 1; round <= rounds && Atomics.load(counts, 2) === 0; round++) {
  folder.share();
  meet(0, round);
  try {
    folder.claim();
    Atomics.add(counts, 2, 1);
  } catch (error) {
    // Without a share, where the other thread has claimed the folder.
    if (!(error instanceof HttpError)) Atomics.add(counts, 2, 1);
  }
  meet(1, round);
}
parentPort?.postMessage('ended');
