/** Carries out a verification's order. */
import type { ReadStore } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { considerate } from '../../coordination/index.js';
import { buildOf } from '../buildNumbers.js';
import type { Projection } from '../projection.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import type { Difference } from './differences.js';
import { startFindings } from './findings.js';
import { type FoundDifference, MaintenanceRefusedError, type Order, type Verification, type Work } from './orders.js';
import { verifyAll, type VerifyOptions, verifySample } from './verify.js';

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
  { signal, report }: Work,
): Promise<Verification> {
  const findings = await startFindings(store.records, projection.name, id);
  const found: FoundDifference[] = [];
  const options: VerifyOptions = {
    events,
    store,
    projection,
    pace: considerate(store.records),
    signal,
    async onDifference(difference) {
      const one = foundOf(difference);
      if (found.length < MAX_FOUND) found.push(one);
      await findings.add(one);
    },
    // Folding takes most of the time.
    onProgress: (step) => report(step.step === 'fold' ? (step.progress.share ?? 0) * 0.7 : null, step),
  };
  const { build, through, ...counts } = await (sample === undefined
    ? verifyWhole(options, openScratch)
    : verifySample({ ...options, count: sample }));
  await findings.end();
  return { ...buildOf(build), ...counts, position: through ?? null, found };
}

async function verifyWhole(
  options: VerifyOptions,
  openScratch: VerificationDeps['openScratch'],
): ReturnType<typeof verifyAll> {
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

function foundOf({ id, kind, servedAt, logAt, fields }: Difference): FoundDifference {
  return {
    id,
    kind,
    ...(servedAt === undefined ? {} : { served_at: servedAt }),
    ...(logAt === undefined ? {} : { log_at: logAt }),
    fields,
  };
}
