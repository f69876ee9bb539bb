/**
 * What readers use and the leading projector does not know how to fold: a deployment whose code lacks the previous fold,
 * an earlier release brought back, or one that has never heard of a read model that a later one added. The leading
 * process builds its own version and says in a record what it does not keep; one of those that stand by, of the release
 * that knows it, keeps that up to date meanwhile, under a lease of its own. Where none does, readers see it as it was
 * left: writes wait for it in vain (a second; for redemptions on an embedded log those who read the gift do), reads
 * that send `Gift-Position` get 503, and readiness, status and log say so.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { Projection } from './projection.js';
import { buildText, foldOf, rankOf, sameVersion } from './builds.js';
import { runFeed } from './feed.js';
import { emptyIfInvalid } from './invalidBuilds.js';
import { acquireLease } from '../coordination/lease.js';
import { openBuild, type RunningBuild } from './runningBuild.js';

/** How often those that stand by look for something to keep, and whether it is still wanted, in ms. */
const LOOK_MS = 500;
const ORPHANED = 'orphaned/';
/**
 * Key of the record that names every read model that a leading process has known. Losing it means that what one has
 * never heard of is kept by nobody while that one leads.
 */
const KNOWN_MODELS = 'read-models';

/**
 * What the leading projector does not keep up to date though readers use it. A record: losing it means that nobody
 * keeps it until another leads.
 */
export interface OrphanedModel {
  /** The collection's number. */
  readonly number: number;
}

interface Process {
  readonly store: ReadStore;
  readonly logger: Logger;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  /** Default `LEASE_MS`. */
  readonly leaseMs: number | undefined;
}

/** The name of the lease of whoever keeps it. */
export function keeperLease(name: string, number: number): string {
  return `projector/${name}@${number}`;
}

/** What of that projection the leading projector does not keep. @throws UnavailableError */
export async function orphanOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<OrphanedModel | undefined> {
  return (await records.get<OrphanedModel>(ORPHANED + name))?.value;
}

/** Whose process it is that leads. */
interface Leading extends Process {
  readonly signal: AbortSignal;
}

/**
 * Says, before the leading process writes anything, what it keeps up to date of what readers use, and what it does not;
 * another that kept what it will write has ended by then.
 * @returns the names of those that it does not keep. @throws UnavailableError
 */
export async function settleOrphaned(leading: Leading, builds: readonly RunningBuild[]): Promise<Set<string>> {
  const { store, logger } = leading;
  const orphan = new Set<string>();
  for (const name of new Set(builds.map(({ projection }) => projection.name))) {
    const own = builds.filter(({ projection }) => projection.name === name);
    const numbers = own.map(({ projection }) => projection.version).sort((a, b) => rankOf(b) - rankOf(a));
    const [newest = 0, active] = [numbers[0], own[0]?.active];
    const told = { projection: name, serves: buildText(active ?? newest), builds: buildText(newest) };
    if (active !== undefined && !numbers.includes(active)) {
      orphan.add(name);
      await store.records.put(ORPHANED + name, { number: active } satisfies OrphanedModel);
      logger.warn(
        told,
        'projector: this program does not know how to keep up to date what is served, and builds its own version: until that is in use, let a process of the release that made it run on, or reads will be behind',
      );
      continue;
    }
    const before = await orphanOf(store, name);
    if (before !== undefined) await takeBack(leading, name, before);
    if (active !== undefined && !sameVersion(active, newest))
      logger.info(
        told,
        'projector: what is served is of a previous release: it is kept up to date while this one builds its own version, which is then swapped in',
      );
  }
  await leaveToOthers(leading, new Set(builds.map(({ projection }) => projection.name)));
  return orphan;
}

/**
 * What this process does not lead for is left to others: another release added it, or this one sees a single read model
 * through. @throws UnavailableError @param own the names that it leads for
 */
async function leaveToOthers({ store, logger }: Leading, own: ReadonlySet<string>): Promise<void> {
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
  const all = new Set([...known, ...own]);
  if (all.size > known.length) await store.records.put(KNOWN_MODELS, [...all]);
}

async function takeBack(
  { store, logger, holder, leaseMs, signal }: Leading,
  name: string,
  { number }: OrphanedModel,
): Promise<void> {
  await endOrphaned(store, name);
  const keeper = await acquireLease(store.records, keeperLease(name, number), {
    holder,
    signal,
    logger,
    ttlMs: leaseMs,
  });
  await keeper?.release();
}

/** Readers use what the leading process keeps. @throws UnavailableError */
export async function endOrphaned({ records }: Pick<ReadStore, 'records'>, name: string): Promise<void> {
  await records.delete(ORPHANED + name);
}

/**
 * Keeps up to date, as long as this process stands by, what the leading one does not and this one's code knows.
 * Failures are logged and waited out.
 */
export async function keepOrphaned(
  {
    events,
    store,
    projections,
    logger,
    holder,
    leaseMs,
  }: Process & { readonly events: EventStore; readonly projections: readonly Projection[] },
  until: AbortSignal,
): Promise<void> {
  const keeping = new Map<string, Promise<void>>();

  async function wanted(name: string, number: number): Promise<boolean> {
    return (await orphanOf(store, name))?.number === number;
  }

  async function keep(fold: Projection): Promise<void> {
    const { name, version: number } = fold;
    const ended = new AbortController();
    const signal = AbortSignal.any([until, ended.signal]);
    const tending = (async () => {
      for (; !signal.aborted; await pause(LOOK_MS, signal)) if (!(await wanted(name, number))) ended.abort();
    })().catch((error: unknown) => {
      logger.warn(
        { err: error, projection: name },
        'projector: could not see whether what is served is still to be kept up to date, trying on',
      );
      ended.abort();
    });
    try {
      const lease = await acquireLease(store.records, keeperLease(name, number), {
        holder,
        signal,
        logger,
        ttlMs: leaseMs,
      });
      if (lease === undefined) return;
      try {
        // Asked with the lease in hand: who takes it back deletes the record first, and then waits for the lease.
        if (!(await wanted(name, number))) return;
        logger.info(
          { projection: name, serves: buildText(number) },
          'projector: keeping up to date what is served and the leading process does not know',
        );
        // Taken out of use, it is nobody's to keep any more.
        if (await emptyIfInvalid({ store, events, logger, lease }, fold)) return;
        const build = await openBuild(store, fold);
        await runFeed([build], {
          events,
          store,
          lease,
          signal: AbortSignal.any([signal, lease.lost]),
          caughtUp: async () => undefined,
        });
      } finally {
        await lease.release();
      }
    } finally {
      ended.abort();
      await tending;
    }
  }

  for (; !until.aborted; await pause(LOOK_MS, until)) {
    try {
      for (const { key, value } of await store.records.list<OrphanedModel>(ORPHANED)) {
        const name = key.slice(ORPHANED.length);
        const projection = projections.find((one) => one.name === name);
        const fold = projection === undefined ? undefined : foldOf(projection, value.number);
        if (fold === undefined || keeping.has(key)) continue;
        const running = keep(fold)
          .catch((error: unknown) =>
            logger.warn(
              { err: error, projection: name },
              'projector: could not keep up to date what the leading process does not know, trying on',
            ),
          )
          .finally(() => keeping.delete(key));
        keeping.set(key, running);
      }
    } catch (error) {
      // An engine that does not answer is told of by whoever waits for the lease.
      logger.debug({ err: error }, 'projector: could not look for what the leading process does not know');
    }
  }
  await Promise.all(keeping.values());
}
