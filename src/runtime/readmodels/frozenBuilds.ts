/**
 * Builds that do not follow the log any more, and so would retain the data that an erasure removes from the log. The
 * process that erases requests that they be dropped. Only the leading process drops them, since it alone knows which
 * builds it folds.
 */
import { sleep, ticks } from '../../lib/world.js';
import type { Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { LeaderRun } from './leaderRun.js';
import { abandonNumber } from './ownBuild.js';
import { checkpointName } from './projection.js';
import { rebuildOf } from './rebuildRecord.js';
import { isRunning } from './runningBuild.js';
import type { SwapDeps } from './swap.js';
import { dropBuild } from './unusedBuilds.js';

/** Prefix of the keys of requests; the rest is the read model's name. */
const FROZEN = 'frozen/';

interface FrozenRequest {
  /** Builds that have not reached this position are to be dropped, unless a process folds them. */
  readonly position: Position;
}

/** Longer than the leading process takes to notice a request (`leaderOrders.ts`). */
const WAIT_MS = 5_000;
const POLL_MS = 100;

/**
 * Waits until each present build of these read models has reached `position`, or the leading process has dropped it.
 * @returns the other builds, named as in checkpoints (`accounts@1`): they are in use or being built, or no process
 * leads. The call must be repeated.
 * @throws UnavailableError: safe to repeat
 */
export async function awaitNoneFrozen(
  store: ReadStore,
  names: readonly string[],
  position: Position,
  waitMs = WAIT_MS,
): Promise<string[]> {
  const until = ticks() + waitMs;
  const behind: string[] = [];
  for (const name of names) {
    // The versions are read first: builds that are opened later fold the erasure itself.
    let missed = await notReached(store, name, await store.versions(name), position);
    if (missed.length > 0) await store.records.put(FROZEN + name, { position } satisfies FrozenRequest);
    while (missed.length > 0 && ticks() < until) {
      await sleep(POLL_MS);
      const stored = await store.versions(name);
      missed = await notReached(
        store,
        name,
        missed.filter((number) => stored.includes(number)),
        position,
      );
    }
    behind.push(...missed.map((version) => checkpointName({ name, version })));
  }
  return behind;
}

/**
 * Drops the builds that requests concern, except those that run here, the one in use and one that another process
 * builds. A dropped build's number is not used again, and a rollback to it is refused. A request waits while the build
 * in use does not follow the log.
 * @throws UnavailableError
 */
export async function dropFrozenBuilds({
  store,
  builds,
  inUse,
  lease,
  logger,
}: SwapDeps & Pick<LeaderRun, 'builds' | 'inUse'>): Promise<void> {
  for (const { key, value, version } of await store.records.list<FrozenRequest>(FROZEN)) {
    const name = key.slice(FROZEN.length);
    if (!inUse.has(name)) continue;
    // The versions are read first, so that builds opened later are not dropped.
    const missed = await notReached(store, name, await store.versions(name), value.position);
    const [active, rebuild] = await Promise.all([store.active(name), rebuildOf(store, name)]);
    if (active === undefined || missed.includes(active)) continue;
    for (const number of missed) {
      if (number === rebuild?.value.target || isRunning(builds, name, number)) continue;
      await abandonNumber(store, name, number);
      if (!lease.held) return;
      await dropBuild(store, name, number);
      const projection = checkpointName({ name, version: number });
      logger.info({ projection }, 'projector: dropped a build that follows the log no more, since a person was erased');
    }
    await store.records.delete(key, version);
  }
}

async function notReached(
  store: ReadStore,
  name: string,
  numbers: readonly number[],
  position: Position,
): Promise<number[]> {
  const reached = await Promise.all(
    numbers.map(async (version) => store.reached(checkpointName({ name, version }), position, 0)),
  );
  return numbers.filter((_, index) => reached[index] === false);
}
