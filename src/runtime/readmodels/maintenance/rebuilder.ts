/** Carries out rebuilds that no command builds (`POST /ops/projections/{name}/rebuild`). */
import { pause } from '../../../lib/async/pause.js';
import { type Followers, followers as ownFollowers } from '../../supervision/followers.js';
import type { Projection } from '../projection.js';
import { sameVersion } from '../buildNumbers.js';
import { REBUILDS, type Rebuild } from '../rebuildRecord.js';
import { considerate } from '../../coordination/index.js';
import { LeaseLostError } from '../writer.js';
import { build, RebuildRefusedError, seizeBuildLease, type RebuildDeps } from './rebuild.js';

const LOOK_MS = 1_000;

export interface RebuilderOptions extends RebuildDeps {
  readonly projections: readonly Projection[];
  readonly followers?: Pick<Followers, 'start'>;
}

export function startRebuilder({ followers, ...deps }: RebuilderOptions): { close(): Promise<void> } {
  const { store, projections, logger } = deps;

  async function look(signal: AbortSignal): Promise<void> {
    for (const { key, value: rebuild } of await store.records.list<Rebuild>(REBUILDS)) {
      const name = key.slice(REBUILDS.length);
      const projection = projections.find((one) => one.name === name && sameVersion(one.version, rebuild.target));
      if (projection !== undefined && rebuild.state === 'building' && !rebuild.attended && !signal.aborted)
        await carryOn(projection, rebuild, signal);
    }
  }

  async function carryOn(projection: Projection, { target }: Rebuild, signal: AbortSignal): Promise<void> {
    const lease = await seizeBuildLease(deps, projection.name, signal);
    if (lease === undefined) return;
    try {
      logger.info({ projection: projection.name, build: target }, 'rebuilding');
      const outcome = await build(deps, projection, target, lease, { pace: considerate(store.records), signal });
      logger.info({ projection: projection.name, build: target, outcome }, 'rebuilding ended');
    } finally {
      await lease.release();
    }
  }

  return (followers ?? ownFollowers({ logger })).start('rebuilds', async ({ signal, well }) => {
    while (!signal.aborted) {
      try {
        await look(signal);
      } catch (error) {
        // Another process builds the read model.
        if (!(error instanceof RebuildRefusedError || error instanceof LeaseLostError)) throw error;
      }
      well();
      await pause(LOOK_MS, signal);
    }
  });
}
