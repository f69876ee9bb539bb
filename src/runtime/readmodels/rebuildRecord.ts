/** The record of a rebuild: docs/read-models.md#the-record-of-a-rebuild explains it. */
import type { ReadStore, StoredRecord } from '../../ports/readStore.js';

/** A rebuild or rollback under way. A record: losing it leaves an unfinished collection that is dropped later. */
export interface Rebuild {
  readonly target: number;
  /** What was in use when it was asked for; `undefined`: nothing. */
  readonly from: number | undefined;
  readonly kind: 'rebuild' | 'rollback';
  readonly state: 'building' | 'ready' | 'swapping' | 'aborting' | 'leaving';
  /** Whether a command builds it; else any process with the role projector does. */
  readonly attended: boolean;
  readonly by: string;
  readonly reason?: string;
  /** When it was asked for: ISO 8601, UTC, milliseconds. */
  readonly at: string;
}

/** Before the names of the records of rebuilds. */
export const REBUILDS = 'rebuild/';

/** The rebuild of a read model that is under way. @throws UnavailableError */
export async function rebuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<StoredRecord<Rebuild> | undefined> {
  return records.get<Rebuild>(REBUILDS + name);
}

/**
 * Replaces the record at version `expected` (0: none). @returns its version; `undefined`: another stands there. @throws
 * UnavailableError
 */
export async function putRebuild(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  rebuild: Rebuild,
  expected: number,
): Promise<number | undefined> {
  return records.put(REBUILDS + name, rebuild, { expected });
}
