/** Verifies a read model; the ids of documents that differ are stored for a repair. */
import {
  recordFindings,
  verifyAll,
  type VerifyOptions,
  type VerifyReport,
  verifySample,
} from '../../runtime/readmodels/index.js';
import type { ReadStore } from '../../ports/readStore.js';

/** An empty read store, removed on `close`. */
export interface ScratchStore {
  readonly store: ReadStore;
  close(): Promise<void>;
}

export interface VerificationOptions extends VerifyOptions {
  /** Number of documents to verify, picked at random; absent: all. */
  readonly sample?: number | undefined;
  readonly openScratch: () => Promise<ScratchStore>;
}

/** @throws VerifyRefusedError, VerifyInterruptedError, UnavailableError */
export async function verifyReadModel({ sample, openScratch, ...options }: VerificationOptions): Promise<VerifyReport> {
  const findings = await recordFindings(options.store, options.projection.name);
  const scratch = sample === undefined ? await openScratch() : undefined;
  const watched: VerifyOptions = {
    ...options,
    async onDifference(difference) {
      await findings.add(difference.id);
      await options.onDifference(difference);
    },
  };
  try {
    const report = await (scratch === undefined
      ? verifySample({ ...watched, count: sample ?? 1 })
      : verifyAll({ ...watched, scratch: scratch.store }));
    await findings.end();
    return report;
  } finally {
    await scratch?.close();
  }
}
