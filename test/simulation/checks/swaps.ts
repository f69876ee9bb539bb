/**
 * Whether readers go over to a build that is as far as the one that they leave
 * (docs/read-models.md#the-life-of-a-build). Else what they were shown is gone for a while.
 */
import { checkpointName } from '../../../src/runtime/readmodels/index.js';
import type { Position } from '../../../src/ports/eventStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import type { Documents } from '../engines/documents.js';
import type { Finding } from '../model/finding.js';

export interface SwapWatch {
  /** The read store of a process, each of whose swaps is checked when it is requested. */
  storeOf(process: string, store: ReadStore): ReadStore;
  findings(): readonly Finding[];
}

/** @param end the log's end */
export function watchSwaps(
  documents: Pick<Documents, 'active' | 'checkpoint'>,
  end: () => Position | undefined,
): SwapWatch {
  const findings: Finding[] = [];
  /** The process that has written documents last. Another one may not know yet that it leads no more. */
  let writer: string | undefined;
  const positionOf = (name: string, version: number): Position =>
    documents.checkpoint(checkpointName({ name, version })) ?? '';

  function check(process: string, name: string, version: number): void {
    const active = documents.active(name);
    if (active === undefined || active === version || writer !== process) return;
    const [from, to] = [positionOf(name, active), positionOf(name, version)];
    // A position beyond the log is none: the build is made anew.
    if (from <= to || from > (end() ?? '')) return;
    findings.push({ rule: 'swaps', text: `readers go over from ${name}@${active} at ${from} to @${version} at ${to}` });
  }

  return {
    storeOf: (process, store) => ({
      ...store,
      async write(batches) {
        writer = process;
        return store.write(batches);
      },
      async activate(name, version, options) {
        check(process, name, version);
        return store.activate(name, version, options);
      },
    }),
    findings: () => findings,
  };
}
