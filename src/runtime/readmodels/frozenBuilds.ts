/** Builds that do not follow the log any more, and so would retain the data that an erasure removes from the log. */
import type { Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { rankOf } from './buildNumbers.js';
import { checkpointName } from './projection.js';
import { rebuildOf } from './rebuildRecord.js';
import { dropBuild } from './unusedBuilds.js';

export interface FrozenBuilds {
  /** Dropped builds, named as in checkpoints: `accounts@1`. */
  readonly dropped: readonly string[];
  /** Builds in use, or about to be, that have not reached the position: the call must be repeated. */
  readonly behind: readonly string[];
}

const WAIT_MS = 5_000;

/**
 * Drops all builds of these read models that do not reach `position`, except those in use and those being built. A
 * rollback to a dropped build is refused. If even the build in use does not reach it (no process leads, or the build is
 * orphaned), all count as behind.
 * @throws UnavailableError: a part may be done; safe to repeat
 */
export async function dropFrozenBuilds(
  store: ReadStore,
  names: readonly string[],
  position: Position,
  waitMs = WAIT_MS,
): Promise<FrozenBuilds> {
  const dropped: string[] = [];
  const behind: string[] = [];
  for (const name of names) {
    // The versions are read first, so that builds opened later are left alone.
    const numbers = await store.versions(name);
    const missed = await without(numbers, (number) =>
      store.reached(checkpointName({ name, version: number }), position, waitMs),
    );
    const [active, rebuild] = await Promise.all([store.active(name), rebuildOf(store, name)]);
    const nothingFollows = active === undefined || missed.includes(active);
    for (const number of missed) {
      const build = checkpointName({ name, version: number });
      if (nothingFollows || number === rebuild?.value.target || rankOf(number) > rankOf(active)) behind.push(build);
      else {
        await dropBuild(store, name, number);
        dropped.push(build);
      }
    }
  }
  return { dropped, behind };
}

async function without<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<T[]> {
  const passed = await Promise.all(items.map(test));
  return items.filter((_, index) => passed[index] === false);
}
