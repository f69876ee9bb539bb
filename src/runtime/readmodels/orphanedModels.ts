/** Read models whose build in use the leading process can't fold (docs/read-models.md#orphaned-read-models). */
import type { ReadStore } from '../../ports/readStore.js';
import { acquireLease } from '../coordination/index.js';
import { buildText, rankOf, sameVersion } from './buildNumbers.js';
import type { ProjectorProcess } from './projectorProcess.js';
import type { OpenedBuilds } from './runningBuilds.js';

export const ORPHANED = 'orphaned/';
/**
 * Key of the record of every read model that a leading process has known. Other processes keep those up to date that
 * the next leader does not know.
 */
const KNOWN_MODELS = 'read-models';

/** Record of an orphaned read model. Its loss leaves the read model behind the log until another process leads. */
export interface OrphanedModel {
  /** The number of the build in use. */
  readonly number: number;
}

export function keeperLease(name: string, number: number): string {
  return `projector/${name}@${number}`;
}

export async function orphanOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<OrphanedModel | undefined> {
  return (await records.get<OrphanedModel>(ORPHANED + name))?.value;
}

/** Orphaned read models, as other processes see them. */
export const orphans = { recordOf: orphanOf, keeperLease } as const;

interface LeadingProcess extends ProjectorProcess {
  readonly signal: AbortSignal;
}

/**
 * Records the read models in use that this leading process does not keep up to date, before it writes anything. Waits
 * until another process stops keeping a read model up to date that this one will write.
 * @returns the orphaned read models that this process builds
 */
export async function settleOrphaned(leading: LeadingProcess, { builds, inUse }: OpenedBuilds): Promise<Set<string>> {
  const { store, logger } = leading;
  const orphaned = new Set<string>();
  for (const [name, active] of inUse) {
    const own = builds.filter(({ projection }) => projection.name === name);
    const numbers = own.map(({ projection }) => projection.version).sort((a, b) => rankOf(b) - rankOf(a));
    const [newest = 0] = numbers;
    const facts = { projection: name, serves: buildText(active ?? newest), builds: buildText(newest) };
    if (active !== undefined && !numbers.includes(active)) {
      orphaned.add(name);
      await store.records.put(ORPHANED + name, { number: active } satisfies OrphanedModel);
      logger.warn(
        facts,
        'projector: this program does not know how to keep up to date what is served, and builds its own version: until that is in use, let a process of the release that made it run on, or reads will be behind',
      );
      continue;
    }
    const before = await orphanOf(store, name);
    if (before !== undefined) await takeBack(leading, name, before);
    if (active !== undefined && !sameVersion(active, newest))
      logger.info(
        facts,
        'projector: what is served is of a previous release: it is kept up to date while this one builds its own version, which is then swapped in',
      );
  }
  await leaveToOthers(leading, inUse);
  return orphaned;
}

/**
 * Leaves read models of other releases to processes that stand by. A process that leads for a single read model leaves
 * all others.
 */
async function leaveToOthers(
  { store, logger }: LeadingProcess,
  own: { has(name: string): boolean; keys(): Iterable<string> },
): Promise<void> {
  const known = (await store.records.get<readonly string[]>(KNOWN_MODELS))?.value ?? [];
  for (const name of known) {
    const number = own.has(name) ? undefined : await store.active(name);
    if (number === undefined) continue;
    await store.records.put(ORPHANED + name, { number } satisfies OrphanedModel);
    logger.info(
      { projection: name, serves: buildText(number) },
      'projector: this process does not keep this read model up to date: it is left to those that stand by and know it',
    );
  }
  const all = new Set([...known, ...own.keys()]);
  if (all.size > known.length) await store.records.put(KNOWN_MODELS, [...all]);
}

async function takeBack(
  { store, logger, holder, leaseMs, signal }: LeadingProcess,
  name: string,
  { number }: OrphanedModel,
): Promise<void> {
  // The record is deleted first, so that a keeper that then gets the lease finds no record.
  await endOrphaned(store, name);
  const keeper = keeperLease(name, number);
  const lease = await acquireLease(store.records, keeper, { holder, signal, logger, ttlMs: leaseMs });
  await lease?.release();
}

export async function endOrphaned({ records }: Pick<ReadStore, 'records'>, name: string): Promise<void> {
  await records.delete(ORPHANED + name);
}
