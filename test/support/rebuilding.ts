/** What tests of rebuilds share: who asks, who builds, readers who never stop looking. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { giftStream } from '../../src/domain/gift.js';
import type { EventStore } from '../../src/ports/eventStore.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { gifts, type GiftDocument } from '../../src/projections/gifts.js';
import type { Projection } from '../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../src/runtime/readmodels/readModel.js';
import {
  beginRebuild,
  build,
  type RebuildDeps,
  seizeBuilding,
} from '../../src/runtime/readmodels/maintenance/rebuild.js';
import { asBuild, rebuildOf } from '../../src/runtime/readmodels/builds.js';
import type { Pace } from '../../src/runtime/coordination/pace.js';
import { FULL_SPEED } from './fullSpeed.js';
import { append, silent } from './projecting.js';
import { until } from './until.js';
import { untilStopped } from './untilStopped.js';

/** The projection that is rebuilt. */
export const GIFTS_PROJECTION = gifts as unknown as Projection;
/** Who asks. */
export const ASKED = { by: 'sue', at: '2026-05-04T00:00:00.000Z', reason: 'a test' };

/**
 * What rebuilding needs, in the name of `holder`. Its lease is as long as the service's: a shorter one is lost on a
 * busy machine.
 */
export function depsFor(events: EventStore, store: ReadStore, holder = 'builder'): RebuildDeps {
  return { events, store, logger: silent, holder };
}

/**
 * A rebuild as a command makes it, up to where the projector takes over. @returns the target's number and what became
 * of it
 */
export async function rebuild(
  deps: RebuildDeps,
  {
    projection = GIFTS_PROJECTION,
    pace = FULL_SPEED,
    signal = new AbortController().signal,
  }: { projection?: Projection; pace?: Pace; signal?: AbortSignal } = {},
): Promise<{ target: number; resumed: boolean; outcome: string }> {
  const lease = await seizeBuilding(deps, projection.name, signal);
  if (lease === undefined) throw new Error('interrupted');
  try {
    const { record, resumed } = await beginRebuild(deps.store, projection, ASKED, true);
    const { target, state } = record.value;
    return {
      target,
      resumed,
      outcome: state === 'building' ? await build(deps, projection, target, lease, { pace, signal }) : state,
    };
  } finally {
    await lease.release();
  }
}

/** Waits until the rebuild is swapped in, and nothing is left of it. */
export async function inUse(store: ReadStore, number: number): Promise<void> {
  await until(
    async () => (await store.active('gifts')) === number && (await rebuildOf(store, 'gifts')) === undefined,
    `build ${number} to be in use`,
  );
}

/** What a rebuild's collection holds. */
export const buildCollection = (number: number): { name: string; version: number; indexes: [] } => ({
  name: 'gifts',
  version: asBuild(GIFTS_PROJECTION, number).version,
  indexes: [],
});

/**
 * Claims one gift again and again, while readers in several processes look at it: they must never miss it, fail, or see
 * what was before.
 */
export function restless(
  events: EventStore,
  stores: readonly ReadStore[],
  gift: string,
): { stop(): Promise<{ claims: number; reads: number }> } {
  let claims = 0;
  let reads = 0;
  const write = async (on: () => boolean): Promise<void> => {
    while (on()) {
      const { position } = await append(events, giftStream(gift), 'GiftClaimed', { user_id: `u${++claims}` });
      if (claims % 4 === 0) {
        const model = openReadModel<GiftDocument>(stores[0] as ReadStore, gifts);
        assert.ok(await model.reached(position, 2_000), 'what was written is there to be read');
      }
    }
  };
  const readers = stores.map((store) => async (on: () => boolean): Promise<void> => {
    const model = openReadModel<GiftDocument>(store, gifts);
    let last = 0;
    for (; on(); reads++) {
      const [one, [many]] = [await model.get(gift), await model.getMany([gift])];
      for (const document of [one, many]) {
        assert.ok(document, 'never missing');
        const claim = Number(document?.claimed_by?.slice(1) ?? 0);
        assert.ok(claim >= last, `never back: ${claim} after ${last}`);
        last = claim;
      }
      await sleep(1);
    }
  });
  const traffic = untilStopped([write, ...readers]);
  return {
    async stop() {
      await traffic.stop();
      return { claims, reads };
    },
  };
}
