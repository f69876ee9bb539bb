/** Read models whose stored checkpoint is not a position in the log: they count as absent, and are built anew. */
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { giftsProjection } from '../../../src/projections/gifts.js';
import { checkpointName, collectionOf, type Projection } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { requestRebuild, build } from '../../../src/runtime/readmodels/maintenance/rebuild.js';
import { seizeLease } from '../../../src/runtime/coordination/lease.js';
import { progressOf, putProgress } from '../../../src/runtime/readmodels/maintenance/progress.js';
import { asBuild, buildOf } from '../../../src/runtime/readmodels/buildNumbers.js';
import { rebuildOf } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { openBuild } from '../../../src/runtime/readmodels/runningBuild.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';
import { FULL_SPEED } from '../../support/faults/fullSpeed.js';
import {
  append,
  buy,
  contents,
  type Installation,
  installed,
  redeem,
  settled,
  silent,
} from '../../support/fixtures/projecting.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { until } from '../../support/assertions/until.js';

const test = suite('projector: checkpoints that are no place in the log');
const GIFTS = giftsProjection;
const NOW = '2026-03-01T10:00:00.000Z';

/** A stored checkpoint is never lowered, so each of these replaces a valid one. */
const INVALID = {
  'the number of nothing': '18446744073709551615',
  'no number': 'x',
  'beyond the log': '0000000000999999',
  'too great': '9'.repeat(16),
};

async function storeCheckpoint(store: ReadStore, projection: Projection, position: string): Promise<void> {
  await store.write([
    {
      collection: collectionOf(projection),
      documents: [],
      checkpoint: { projection: checkpointName(projection), position },
    },
  ]);
  assert.is(await store.checkpoint(checkpointName(projection)), position);
}

function listening() {
  const lines: { readonly msg: string; readonly projection?: string; readonly checkpoint?: string }[] = [];
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
  );
  return { lines, logger };
}

/** Gifts that were bought and redeemed, and one more after the projector has ended. */
async function left({ events, store, project }: Installation) {
  const first = await buy(events, [{}, {}]);
  await redeem(events, first.gifts[0]!);
  const projector = await project();
  await settled(projector, events);
  await until(async () => (await store.active('gifts')) !== undefined, 'it is in use');
  await projector.close();
  return first;
}

for (const [what, position] of Object.entries(INVALID)) {
  test(
    `builds a read model in use anew under another number where its checkpoint is ${what}`,
    installed(async (installation) => {
      const { events, store, project } = installation;
      const first = await left(installation);
      await storeCheckpoint(store, GIFTS, position);
      const later = await buy(events);
      const model = openReadModel(store, giftsProjection);
      const { lines, logger } = listening();
      const projector = await project({ logger });
      await settled(projector, events);
      await until(async () => (await store.active('gifts')) !== undefined, 'it is in use again');
      const active = (await store.active('gifts'))!;
      assert.equal(buildOf(active), { version: giftsProjection.version, build: 1 });
      const shown = await contents(store, collectionOf(asBuild(GIFTS, active)));
      assert.equal([...shown.keys()].toSorted(), [...first.gifts, ...later.gifts].toSorted());
      await until(async () => (await model.find({})).length === 3, 'readers have found it');
      assert.is(
        await store.checkpoint(checkpointName(transactionsProjection)),
        await events.end(),
        'the other one just went on',
      );
      assert.is(await store.active('transactions'), transactionsProjection.version);
      assert.equal(
        lines
          .filter(({ msg }) => msg.includes('counts as absent'))
          .map(({ projection, checkpoint }) => [projection, checkpoint]),
        [[checkpointName(GIFTS), position]],
      );
      await projector.close();
      const again = listening();
      await settled(await project({ logger: again.logger }), events);
      assert.equal(again.lines, [], 'once and for all');
      assert.is(await store.active('gifts'), active);
    }),
  );
}

test(
  'shows nothing of a read model ahead of its log until it is built anew',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const [gift = ''] = (await left(installation)).gifts;
    const model = openReadModel(store, giftsProjection);
    assert.ok(await model.get(gift));
    await storeCheckpoint(store, GIFTS, INVALID['beyond the log']);
    let hold: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (hold = resolve));
    const slow = {
      ...events,
      async *follow(...requested: Parameters<typeof events.follow>) {
        await held;
        yield* events.follow(...requested);
      },
    };
    const projector = await project({ events: slow });
    await until(async () => (await store.active('gifts')) === undefined, 'it is out of use');
    await until(
      async () =>
        (await failureOf(model.get(gift).then(() => assert.unreachable('shown')))) instanceof UnavailableError,
      'it is refused',
    );
    assert.instance(await failureOf(model.find({})), UnavailableError);
    hold?.();
    await settled(projector, events);
    await until(
      async () =>
        model.get(gift).then(
          (found) => found !== undefined,
          () => false,
        ),
      'it is shown again',
    );
  }),
);

test(
  'starts a rebuild from nothing where its checkpoint is not in the log',
  installed(async (installation) => {
    const { events, store } = installation;
    const first = await left(installation);
    const deps = { events, store, holder: 'builder', ...listening() };
    const { target } = (await requestRebuild(store, GIFTS, { by: 'test', at: NOW })).value;
    const collection = collectionOf(asBuild(GIFTS, target));
    await store.ensure(collection);
    await store.write([{ collection, documents: [{ id: 'stranger', position: INVALID['beyond the log'], body: {} }] }]);
    await storeCheckpoint(store, asBuild(GIFTS, target), INVALID['the number of nothing']);
    const ending = new AbortController();
    const lease = (await seizeLease(store.records, 'rebuild/gifts', { ...deps, signal: ending.signal }))!;
    assert.is(await build(deps, GIFTS, target, lease, { pace: FULL_SPEED, signal: ending.signal }), 'ready');
    await lease.release();
    assert.equal([...(await contents(store, collection)).keys()].toSorted(), [...first.gifts].toSorted());
    assert.is(await store.checkpoint(`gifts@${target}`), await events.end());
    assert.is((await rebuildOf(store, 'gifts'))?.value.state, 'ready');
    assert.is(deps.lines.length, 1);
    assert.is(await store.active('gifts'), giftsProjection.version, 'what serves is left alone');
  }),
);

test(
  'counts the progress of a rebuild anew where it was kept at no place in the log',
  installed(async (installation) => {
    const { events, store } = installation;
    await left(installation);
    const opened = await openBuild(store, GIFTS);
    for (const position of [...Object.values(INVALID), (await append(events, giftStream('g'), 'Other', {})).position]) {
      const kept = { events: 4_711, position };
      const progress = { events: 4_711, total: null, per_second: 1, share: null, seconds_left: null, position };
      await putProgress(store, 'gifts', { target: giftsProjection.version, progress, stored: kept });
      const { lines, logger } = listening();
      const counted = await progressOf({ events, store, logger }, 'gifts', opened);
      assert.is(counted.now().events, 2, position);
      assert.is(lines.length, 1, position);
    }
    const position = opened.stored!;
    await putProgress(store, 'gifts', {
      target: giftsProjection.version,
      progress: { events: 1, total: null, per_second: 1, share: null, seconds_left: null, position },
      stored: { events: 4_711, position },
    });
    assert.is(
      (await progressOf({ events, store, logger: silent }, 'gifts', opened)).now().events,
      4_711,
      'one that is right is gone on from',
    );
  }),
);

test.run();
