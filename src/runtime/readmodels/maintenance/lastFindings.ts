/** Ids of the documents that the last verification found to differ, retained for `repair --found`. */
import type { ReadStore } from '../../../ports/readStore.js';
import { MAX_REPAIRS } from './repair.js';

const FINDINGS = 'findings/';
const RECORD_IDS = 500;
const KEEP_MS = 7 * 86_400_000;

/** Starts a new list of findings, which replaces the earlier ones. */
export async function recordFindings(
  store: ReadStore,
  name: string,
): Promise<{ add(id: string): Promise<void>; end(): Promise<void> }> {
  await forgetFindings(store, name);
  let ids: string[] = [];
  let kept = 0;
  const putIds = async (): Promise<void> => {
    if (ids.length === 0) return;
    await store.records.put(`${FINDINGS}${name}/${String(kept).padStart(6, '0')}`, ids, {
      expiresAt: Date.now() + KEEP_MS,
    });
    kept += ids.length;
    ids = [];
  };
  return {
    async add(id) {
      // More documents than these need a rebuild.
      if (kept + ids.length > MAX_REPAIRS) return;
      ids.push(id);
      if (ids.length === RECORD_IDS) await putIds();
    },
    end: putIds,
  };
}

export async function lastFindings({ records }: Pick<ReadStore, 'records'>, name: string): Promise<string[]> {
  return (await records.list<string[]>(`${FINDINGS}${name}/`)).flatMap(({ value }) => value);
}

export async function forgetFindings({ records }: Pick<ReadStore, 'records'>, name: string): Promise<void> {
  for (const { key } of await records.list(`${FINDINGS}${name}/`)) await records.delete(key);
}
