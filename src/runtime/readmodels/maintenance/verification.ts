/**
 * Carries out a verification's order, and stores the documents that differ, in pages, for its requester and for
 * `repair --found`.
 */
import { systemMs } from '../../../lib/world.js';
import type { ReadStore, Records } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { considerate } from '../../coordination/index.js';
import type { Projection } from '../projection.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import type { Difference } from './differences.js';
import { MaintenanceRefusedError, type Order, type Verification, type Work } from './orders.js';
import { MAX_REPAIRS } from './repair.js';
import { verifyAll, verifySample } from './verify.js';

/** Number of differences in an order's result; the stored pages have more. */
const MAX_FOUND = 1_000;
const FINDINGS = 'differences/';
const PAGE = 100;
const KEEP_MS = 7 * 86_400_000;

/** An empty read store, removed on `close`. */
interface Scratch {
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
  const withCopy = async (): ReturnType<typeof verifyAll> => {
    const scratch = await openScratch().catch((error: unknown) => {
      // The engines answer, but the copy has no room.
      throw error instanceof UnavailableError ? new MaintenanceRefusedError(error.message) : error;
    });
    try {
      return await verifyAll({ ...options, scratch: scratch.store });
    } finally {
      await scratch.close();
    }
  };
  const report = await (sample === undefined ? withCopy() : verifySample({ ...options, count: sample }));
  await findings.end();
  return { ...report, found };
}

interface FindingsPage {
  /** Id of the verification's order. */
  readonly order: string;
  readonly differences: readonly Difference[];
}

const keyOf = (name: string, page: number): string => `${FINDINGS}${name}/${String(page).padStart(6, '0')}`;

interface Findings {
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
    await records.put(keyOf(name, page++), value, { expiresAt: systemMs() + KEEP_MS });
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
