import type { StartedOperation } from '../../commands/recordAccess.js';
import {
  forgetFindings,
  lastFindings,
  type Projection,
  type RebuildDeps,
  repair,
  type RepairOptions,
  type RepairOutcome,
  RepairRefusedError,
} from '../../runtime/readmodels/index.js';

/** Ids of documents, or `found` for all that the last verification found to differ. */
export type RepairedDocuments = readonly string[] | 'found';

export interface RecordedRepairOptions extends RepairOptions {
  /** Records the start of the repair: the projector does the work, whatever becomes of this process. */
  readonly record: (ids: readonly string[]) => Promise<StartedOperation>;
}

/**
 * Repairs documents of a read model, and records start and end in the log. `undefined` where the signal stopped it;
 * requested repairs may still be done.
 * @throws RepairRefusedError, UnavailableError
 */
export async function repairReadModel(
  deps: RebuildDeps,
  projection: Projection,
  wanted: RepairedDocuments,
  { record, ...options }: RecordedRepairOptions,
): Promise<RepairOutcome[] | undefined> {
  const { store } = deps;
  const { name } = projection;
  const ids = wanted === 'found' ? await lastFindings(store, name) : wanted;
  if (ids.length === 0)
    throw new RepairRefusedError(
      `the last verification of ${name} found nothing, or none was made in the last week`,
      'verify',
    );
  const recorded = await record(ids);
  let outcomes: RepairOutcome[] | undefined;
  try {
    outcomes = await repair(deps, projection, ids, options);
  } finally {
    await recorded.end(outcomes?.length ?? 0, null, outcomes !== undefined);
  }
  if (wanted === 'found' && outcomes !== undefined) await forgetFindings(store, name);
  return outcomes;
}
