/** Keeps orphaned read models up to date while this process stands by, if its code has their fold. */
import { pauseForBeats } from '../../lib/async/beats.js';
import { acquireLease } from '../coordination/index.js';
import { buildText, foldOf } from './buildNumbers.js';
import { runFeed } from './feed.js';
import { emptyIfInvalid } from './invalidBuilds.js';
import { keeperLease, ORPHANED, type OrphanedModel, orphanOf } from './orphanedModels.js';
import type { Projection } from './projection.js';
import type { ProjectorProcess } from './projectorProcess.js';
import { openBuild } from './runningBuild.js';

const POLL_MS = 500;

interface KeeperOptions extends ProjectorProcess {
  readonly projections: readonly Projection[];
}

export async function keepOrphaned(options: KeeperOptions, until: AbortSignal): Promise<void> {
  const { store, projections, logger } = options;
  const keeping = new Map<string, Promise<void>>();
  for (; !until.aborted; await pauseForBeats(POLL_MS, until)) {
    try {
      for (const { key, value } of await store.records.list<OrphanedModel>(ORPHANED)) {
        const name = key.slice(ORPHANED.length);
        const projection = projections.find((one) => one.name === name);
        const fold = projection === undefined ? undefined : foldOf(projection, value.number);
        if (fold === undefined || keeping.has(key)) continue;
        const running = keep(options, fold, until)
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
      // The wait for the projector's lease reports an engine that does not answer.
      logger.debug({ err: error }, 'projector: could not look for what the leading process does not know');
    }
  }
  await Promise.all(keeping.values());
}

async function keep(
  { events, store, logger, holder, leaseMs }: KeeperOptions,
  fold: Projection,
  until: AbortSignal,
): Promise<void> {
  const { name, version: number } = fold;
  const ended = new AbortController();
  const signal = AbortSignal.any([until, ended.signal]);
  const isOrphaned = async (): Promise<boolean> => (await orphanOf(store, name))?.number === number;
  const watching = (async () => {
    for (; !signal.aborted; await pauseForBeats(POLL_MS, signal)) if (!(await isOrphaned())) ended.abort();
  })().catch((error: unknown) => {
    logger.warn(
      { err: error, projection: name },
      'projector: could not see whether what is served is still to be kept up to date, trying on',
    );
    ended.abort();
  });
  try {
    const keeper = keeperLease(name, number);
    const lease = await acquireLease(store.records, keeper, { holder, signal, logger, ttlMs: leaseMs });
    if (lease === undefined) return;
    try {
      // Checked under the lease: the leading process deletes the record before it waits for the lease.
      if (!(await isOrphaned())) return;
      logger.info(
        { projection: name, serves: buildText(number) },
        'projector: keeping up to date what is served and the leading process does not know',
      );
      // A build that was emptied is out of use.
      if (await emptyIfInvalid({ store, events, logger, lease }, fold)) return;
      const build = await openBuild(store, fold);
      const stop = AbortSignal.any([signal, lease.lost]);
      await runFeed([build], { events, store, lease, signal: stop, caughtUp: async () => undefined });
    } finally {
      await lease.release();
    }
  } finally {
    ended.abort();
    await watching;
  }
}
