/** The record of a rebuild or rollback (docs/read-models.md#the-record-of-a-rebuild). */
import type { ReadStore, StoredRecord } from '../../ports/readStore.js';
import { MAINTENANCE, raiseEdition } from './edition.js';

/** Losing the record leaves an unfinished collection, which is dropped later. */
export interface Rebuild {
  readonly target: number;
  /** The build in use at the request. */
  readonly from: number | undefined;
  readonly kind: 'rebuild' | 'rollback';
  readonly state: 'building' | 'ready' | 'swapping' | 'aborting' | 'leaving';
  readonly by: string;
  readonly reason?: string;
  /** Time of the request, ISO 8601, UTC, milliseconds. */
  readonly at: string;
  /** Name of the requesting process, if it can carry the rebuild out itself. */
  readonly process?: string;
  /** Why the build can't go on; a repeated request removes it. */
  readonly failure?: string;
}

export const REBUILDS = 'rebuild/';

export async function rebuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<StoredRecord<Rebuild> | undefined> {
  return records.get<Rebuild>(REBUILDS + name);
}

/** `expected` 0: no record. @returns the new version; `undefined`: another version exists */
export async function putRebuild(
  store: Pick<ReadStore, 'records'>,
  name: string,
  rebuild: Rebuild,
  expected: number,
): Promise<number | undefined> {
  const version = await store.records.put(REBUILDS + name, rebuild, { expected });
  if (version !== undefined) await raiseEdition(store, MAINTENANCE);
  return version;
}
