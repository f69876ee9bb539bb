/** Carries out a verification's order. */
import type { ReadStore } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { considerate } from '../../coordination/index.js';
import type { Projection } from '../projection.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import type { Difference } from './differences.js';
import { startFindings } from './findings.js';
import { MaintenanceRefusedError, type Order, type Verification, type Work } from './orders.js';
import { verifyAll, verifySample } from './verify.js';

/** Number of differences in an order's result; `findings.ts` has more. */
const MAX_FOUND = 1_000;

/** An empty read store, removed on `close`. */
export interface Scratch {
  readonly store: ReadStore;
  close(): Promise<void>;
}

export interface VerificationDeps extends ProjectorProcess {
  /** Opens the store for the copy that a verification makes. */
  openScratch(): Promise<Scratch>;
}

/** @throws MaintenanceRefusedError, VerifyInterruptedError, UnavailableError */
export async function verification(
  { events, store, openScratch }: VerificationDeps,
  projection: Projection,
  { id, request: { sample } }: Order<'verification'>,
  work: Work,
): Promise<Verification> {
  const findings = await startFindings(store.records, projection.name, id);
  const found: Difference[] = [];
  const options = {
    ...work,
    events,
    store,
    projection,
    pace: considerate(store.records),
    async onDifference(difference: Difference) {
      if (found.length < MAX_FOUND) found.push(difference);
      await findings.add(difference);
    },
  };
  const report = await (sample === undefined ? withCopy() : verifySample({ ...options, count: sample }));
  await findings.end();
  return { ...report, found };

  async function withCopy(): ReturnType<typeof verifyAll> {
    const scratch = await openScratch().catch((error: unknown) => {
      // The engines answer, but the copy has no room.
      throw error instanceof UnavailableError ? new MaintenanceRefusedError(error.message) : error;
    });
    try {
      return await verifyAll({ ...options, scratch: scratch.store });
    } finally {
      await scratch.close();
    }
  }
}
