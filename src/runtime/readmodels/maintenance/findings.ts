/** Documents that the last verification found to differ, in pages, for its requester and for `repair --found`. */
import type { Records } from '../../../ports/readStore.js';
import type { Difference } from './differences.js';
import { MAX_REPAIRS } from './repair.js';

const FINDINGS = 'differences/';
const PAGE = 100;
const KEEP_MS = 7 * 86_400_000;

interface FindingsPage {
  /** Id of the verification's order. */
  readonly order: string;
  readonly differences: readonly Difference[];
}

const keyOf = (name: string, page: number): string => `${FINDINGS}${name}/${String(page).padStart(6, '0')}`;

export interface Findings {
  add(difference: Difference): Promise<void>;
  end(): Promise<void>;
}

/** Starts a new list of findings, which replaces the earlier ones. */
export async function startFindings(records: Records, name: string, order: string): Promise<Findings> {
  await forgetFindings(records, name);
  let differences: Difference[] = [];
  let page = 0;
  const end = async (): Promise<void> => {
    if (differences.length === 0) return;
    const value: FindingsPage = { order, differences };
    await records.put(keyOf(name, page++), value, { expiresAt: Date.now() + KEEP_MS });
    differences = [];
  };
  return {
    async add(difference) {
      // More documents than a repair takes need a rebuild.
      if (page * PAGE + differences.length === MAX_REPAIRS) return;
      differences.push(difference);
      if (differences.length === PAGE) await end();
    },
    end,
  };
}

/** A page of a verification's findings, from 0; `undefined`: it does not exist, or not yet. */
export async function findingsPage(
  records: Records,
  name: string,
  order: string,
  page: number,
): Promise<readonly Difference[] | undefined> {
  const found = (await records.get<FindingsPage>(keyOf(name, page)))?.value;
  return found?.order === order ? found.differences : undefined;
}

export async function lastFindings(records: Records, name: string): Promise<string[]> {
  const pages = await records.list<FindingsPage>(`${FINDINGS}${name}/`);
  return pages.flatMap(({ value }) => value.differences.map(({ id }) => id));
}

export async function forgetFindings(records: Records, name: string): Promise<void> {
  for (const { key } of await records.list(`${FINDINGS}${name}/`)) await records.delete(key);
}
