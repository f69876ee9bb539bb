/** Rebuilds and rollbacks that a deployment leaves behind: no process of the new release can finish them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { transactionsProjection } from '../../../../src/projections/transactions.js';
import { startMaintenance } from '../../../../src/runtime/readmodels/maintenance/maintainer.js';
import type { Projection } from '../../../../src/runtime/readmodels/projection.js';
import { putRebuild, rebuildOf, type Rebuild } from '../../../../src/runtime/readmodels/rebuildRecord.js';
import { until } from '../../../support/assertions/until.js';
import { buy, installed, settled } from '../../../support/fixtures/projecting.js';
import {
  buildCollection,
  depsFor,
  GIFTS_PROJECTION,
  NO_TOOLS,
  REQUESTED,
} from '../../../support/fixtures/rebuilding.js';

const test = suite('rebuilds that a deployment leaves behind');
const V = GIFTS_PROJECTION.version;
const TARGET = V * 1_000_000 + 1;
const NEXT: readonly Projection[] = [
  { ...GIFTS_PROJECTION, version: V + 1, previous: [GIFTS_PROJECTION] },
  transactionsProjection,
];

for (const [kind, state] of [
  ['rebuild', 'building'],
  ['rebuild', 'ready'],
  ['rebuild', 'swapping'],
  ['rollback', 'ready'],
] satisfies [Rebuild['kind'], Rebuild['state']][])
  test(
    `a ${kind} that is ${state} ends once the version of the next release is in use`,
    installed(async ({ events, store, project }) => {
      await buy(events);
      const before = await project();
      await settled(before, events);
      await before.close();
      await store.ensure(buildCollection(TARGET));
      await putRebuild(store, 'gifts', { ...REQUESTED, target: TARGET, from: V, kind, state }, 0);
      const maintenance = startMaintenance({ ...depsFor(events, store), projections: NEXT, ...NO_TOOLS });
      try {
        await project({ projections: NEXT, retireMs: 100 });
        await until(async () => (await store.active('gifts')) === V + 1, 'the next version to be in use');
        await until(async () => (await rebuildOf(store, 'gifts')) === undefined, 'the record to be gone');
        const builds = await store.versions('gifts');
        assert.is(builds.includes(TARGET), kind === 'rollback', 'what a rebuild has built is dropped');
        assert.ok(builds.includes(V), 'the way back to the last release stays');
      } finally {
        await maintenance.close();
      }
    }),
  );

test.run();
