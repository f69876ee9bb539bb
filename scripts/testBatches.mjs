/** Which test files share a process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLong } from './byLength.mjs';
import { root } from './build.mjs';

/** Files of one process: after as many, what they left in memory could matter. */
const MOST = 12;

/** Their tests see a process of their own from within: its memory, threads, signals, files, or end. */
const OWN_PROCESS =
  /^(adapters\/(eventstoredb|mongodb|nats)|demo|faults|tracing)\/|^docs\/runbook|^api\/(crashPoints|diskFaults|followers|fullDisk|keyHolders|lateReadModels|projectorGone)|^processors\/(crash|hanging)|^service\/(app|engines|erasedMemory|onEngines|service)\.|^simulation\/(checks|simulate|world)\./;
/** What they change, the next file would find. */
const CHANGES_PROCESS = /moveClock|SANDBOX|sandbox\/clock|process\.(env\[|chdir|on\()|globalThis/;

function sharesProcess({ file }) {
  return (
    !OWN_PROCESS.test(file) &&
    !isLong(file) &&
    !CHANGES_PROCESS.test(readFileSync(join(root, 'dist/test', file), 'utf8'))
  );
}

/**
 * Neighbours that may share a process, in the order given: loading the service, and its first start, take longer than
 * most files' tests.
 * @param runs each a file, the label of its run, and its environment
 */
export function inBatches(runs) {
  const batches = [];
  const open = new Map();
  for (const run of runs) {
    if (!sharesProcess(run)) {
      batches.push([run]);
      continue;
    }
    const folder = `${run.file.split('/')[0]} ${run.label}`;
    const batch = open.get(folder);
    if (batch !== undefined && batch.length < MOST) batch.push(run);
    else {
      const opened = [run];
      open.set(folder, opened);
      batches.push(opened);
    }
  }
  return batches;
}
