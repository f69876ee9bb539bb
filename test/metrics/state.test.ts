import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parkedStream } from '../../src/domain/parked.js';
import type { Engines } from '../../src/ports/engines.js';
import { showFollowers } from '../../src/metrics/followers.js';
import { showProcess } from '../../src/metrics/nodeProcess.js';
import { parkedWork } from '../../src/ops/status/parkedWork.js';
import { showProcesses } from '../../src/metrics/processes.js';
import { showState } from '../../src/metrics/state.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { processTally } from '../../src/processors/runner/status.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { checkpointName } from '../../src/runtime/readmodels/projection.js';
import { recordQuarantine } from '../../src/runtime/readmodels/quarantine.js';
import { transactionsProjection } from '../../src/projections/transactions.js';
import { event } from '../support/engines/eventStoreEvents.js';
import { exposed } from '../support/service/exposed.js';
import { type Installation, newInstallation } from '../support/fixtures/projecting.js';
import { eventually } from '../support/assertions/until.js';

const test = suite<{ installation: Installation }>('installation');
const PROJECTIONS = [giftsProjection, transactionsProjection];
const BUS = { engine: 'none', ping: async () => undefined } as Engines['bus'];

const KEYS = { engine: 'embedded', ping: async () => undefined };

test.before.each(async (context) => {
  context.installation = await newInstallation();
});
test.after.each(({ installation }) => installation.destroy());

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();

test("shows a projection that no process runs as behind the log's end", async ({ installation: { events, store } }) => {
  const { show, values } = exposed();
  showState(show, {
    engines: { events, store, bus: BUS },
    keyStore: KEYS,
    projections: PROJECTIONS,
    processes: () => undefined,
  });
  await events.append(
    'gift-1',
    [{ ...event('GiftRedeemed'), at: ago(90) }, { ...event('GiftRedeemed'), at: ago(30) }, event('UserAdded')],
    'none',
  );
  const found = await values();
  const seconds =
    found.get(`gift_projection_lag_seconds{projection="gifts",version="${giftsProjection.version}"}`) ?? 0;
  assert.ok(seconds >= 90 && seconds < 100, String(seconds));
  assert.is(found.get(`gift_projection_lag_events{projection="gifts",version="${giftsProjection.version}"}`), 2);
  assert.is(
    found.get(`gift_projection_lag_seconds{projection="transactions",version="${transactionsProjection.version}"}`),
    0,
    'nothing of these events concerns it',
  );
  assert.is(found.get(`gift_projection_active{projection="gifts",version="${giftsProjection.version}"}`), 0);
  for (const part of [
    'event store",engine="embedded',
    'read store",engine="embedded',
    'bus",engine="none',
    'key store",engine="embedded',
  ])
    assert.is(found.get(`gift_engine_up{part="${part}"}`), 1, part);
});

test('shows a projection whose stored position is not a position in the log as behind by everything', async ({
  installation: { events, store },
}) => {
  const { show, values } = exposed();
  showState(show, {
    engines: { events, store, bus: BUS },
    keyStore: KEYS,
    projections: PROJECTIONS,
    processes: () => undefined,
  });
  await events.append('gift-1', [{ ...event('GiftRedeemed'), at: ago(90) }], 'none');
  const collection = { name: giftsProjection.name, version: giftsProjection.version, indexes: giftsProjection.indexes };
  await store.write([
    {
      collection,
      documents: [],
      checkpoint: { projection: checkpointName(giftsProjection), position: '18446744073709551615' },
    },
  ]);
  const found = await values();
  assert.is(found.get(`gift_projection_lag_events{projection="gifts",version="${giftsProjection.version}"}`), 1);
  assert.ok(found.get(`gift_projection_lag_seconds{projection="gifts",version="${giftsProjection.version}"}`)! >= 90);
  assert.is(
    found.get(`gift_projection_lag_events{projection="transactions",version="${transactionsProjection.version}"}`),
    0,
  );
});

test('shows stored, used and quarantined builds, and looks once a second', async ({
  installation: { events, store },
}) => {
  const { show, values } = exposed();
  showState(show, {
    engines: { events, store, bus: BUS },
    keyStore: KEYS,
    projections: PROJECTIONS,
    processes: () => undefined,
  });
  const { position } = await events.append('gift-1', [event('GiftRedeemed')], 'none');
  const collection = { name: giftsProjection.name, version: giftsProjection.version, indexes: giftsProjection.indexes };
  await store.ensure(collection);
  await store.write([
    { collection, documents: [], checkpoint: { projection: checkpointName(giftsProjection), position } },
  ]);
  await store.activate(giftsProjection.name, giftsProjection.version);
  for (const id of ['a', 'b'])
    await recordQuarantine(store.records, giftsProjection, {
      documentId: id,
      eventId: 'e',
      type: 'GiftIssued',
      stream: 's',
      position,
      cause: 'c',
    });
  const found = await values();
  assert.is(found.get(`gift_projection_lag_seconds{projection="gifts",version="${giftsProjection.version}"}`), 0);
  assert.is(found.get(`gift_projection_active{projection="gifts",version="${giftsProjection.version}"}`), 1);
  assert.is(found.get(`gift_quarantined_documents{projection="gifts",version="${giftsProjection.version}"}`), 2);
  await events.append('gift-2', [event('GiftRedeemed')], 'none');
  assert.is(
    (await values()).get(`gift_projection_lag_events{projection="gifts",version="${giftsProjection.version}"}`),
    0,
  );
  await sleep(1_010);
  assert.is(
    (await values()).get(`gift_projection_lag_events{projection="gifts",version="${giftsProjection.version}"}`),
    1,
  );
});

test('shows what readers use of another release beside what is built', async ({ installation: { events, store } }) => {
  const { show, values } = exposed();
  showState(show, {
    engines: { events, store, bus: BUS },
    keyStore: KEYS,
    projections: PROJECTIONS,
    processes: () => undefined,
  });
  const { position } = await events.append('gift-1', [event('GiftRedeemed')], 'none');
  const served = { name: giftsProjection.name, version: giftsProjection.version + 1, indexes: [] };
  await store.ensure(served);
  await store.write([
    { collection: served, documents: [], checkpoint: { projection: checkpointName(served), position } },
  ]);
  await store.activate(served.name, served.version);
  const found = await values();
  const of = (metric: string, version: number): number | undefined =>
    found.get(`gift_projection_${metric}{projection="gifts",version="${version}"}`);
  assert.equal([of('active', served.version), of('lag_events', served.version)], [1, 0]);
  assert.equal([of('active', giftsProjection.version), of('lag_events', giftsProjection.version)], [0, 1]);
});

test('shows a missing or silent engine as down, and leaves out its figures', async ({
  installation: { events, store },
}) => {
  const { show, values } = exposed();
  const gone = async (): Promise<never> => Promise.reject(new UnavailableError('gone'));
  const silent = async (): Promise<never> => new Promise(() => undefined);
  const broken = { ...store, ping: silent, checkpoint: gone };
  showState(show, {
    engines: { events: { ...events, ping: gone, read: gone }, store: broken, bus: BUS },
    keyStore: { engine: 'mongodb', ping: silent },
    projections: PROJECTIONS,
    processes: () => undefined,
  });
  const found = await values();
  assert.equal(
    [...found],
    [
      ['gift_engine_up{part="event store",engine="embedded"}', 0],
      ['gift_engine_up{part="read store",engine="embedded"}', 0],
      ['gift_engine_up{part="bus",engine="none"}', 1],
      ['gift_engine_up{part="key store",engine="mongodb"}', 0],
    ],
  );
});

test('counts parked work from its streams, each event once, however many look', async ({
  installation: { events },
}) => {
  const count = parkedWork(events);
  assert.equal(
    [...(await count())],
    [
      ['purchase', 0],
      ['notification', 0],
      ['refund', 0],
      ['dispute', 0],
    ],
  );
  const parked = (entity: string, step: string) =>
    event('WorkParked', { entity, transaction_id: 't', step, cause: 'c', event_id: 'e', times: 1 });
  await events.append(
    parkedStream('purchase'),
    Array.from({ length: 1_000 }, (_, n) => parked(`t${n}`, 'charge')),
    'none',
  );
  await events.append(parkedStream('notification'), [parked('g1', 'notify'), parked('g1', 'notify')], 'none');
  const looks = await Promise.all([count(), count(), count()]);
  for (const look of looks)
    assert.equal(
      [...look],
      [
        ['purchase', 1_000],
        ['notification', 1],
        ['refund', 0],
        ['dispute', 0],
      ],
    );
  await events.append(parkedStream('purchase'), [parked('t0', 'charge'), parked('t0', 'issue')], 'any');
  assert.is((await count()).get('purchase'), 1_000, 'one entity is parked once, whatever step it is at');
  const seen = (type: string, entity: string) =>
    event(type, { entity, transaction_id: 't', step: 'charge', times: 1, reason: 'r' });
  await events.append(
    parkedStream('purchase'),
    [seen('WorkRetried', 't1'), seen('WorkDiscarded', 't2'), seen('WorkRetried', 't3'), parked('t3', 'charge')],
    'any',
  );
  assert.is((await count()).get('purchase'), 998);
});

test("shows process managers' leader, open work, age and flight, and no lag on a standby", async ({
  installation: { events, store },
}) => {
  const { show, values } = exposed();
  const tally = processTally();
  showProcesses(show, tally.status);
  showState(show, { engines: { events, store, bus: BUS }, keyStore: KEYS, projections: [], processes: tally.status });
  let found = await values();
  assert.is(found.get('gift_process_leader'), 0);
  assert.not(
    found.has('gift_process_open') ||
      found.has('gift_process_lag_seconds') ||
      found.has('gift_process_oldest_open_seconds'),
  );
  await sleep(1_010);
  await events.append('transaction-1', [{ ...event('GiftsPurchased'), at: ago(60) }], 'none');
  tally.started(() => ({ caughtUp: true, position: undefined, open: 3, oldestAt: ago(20) }));
  tally.takenOn('charge');
  tally.takenOn('charge');
  tally.failed('charge');
  tally.parked('charge');
  tally.done('charge');
  found = await values();
  assert.equal(
    [
      'gift_process_leader',
      'gift_process_open',
      'gift_process_in_flight{step="charge"}',
      'gift_process_failures_total{step="charge"}',
      'gift_process_parked_total{step="charge"}',
    ].map((name) => found.get(name)),
    [1, 3, 1, 1, 1],
  );
  assert.ok(Math.abs(found.get('gift_process_oldest_open_seconds')! - 20) < 3);
  assert.ok(found.get('gift_process_lag_seconds')! >= 60);
  tally.ended();
  found = await values();
  assert.equal(
    ['gift_process_leader', 'gift_process_in_flight{step="charge"}', 'gift_process_failures_total{step="charge"}'].map(
      (name) => found.get(name),
    ),
    [0, 0, 1],
  );
});

test('shows no process managers where none run, and an age of 0 where nothing is open', async () => {
  const { show, values } = exposed();
  showProcesses(show, () => undefined);
  assert.is((await values()).size, 0);
  const idle = exposed();
  const tally = processTally();
  let caughtUp = false;
  tally.started(() => ({ caughtUp, position: '1', open: 0, oldestAt: undefined }));
  showProcesses(idle.show, tally.status);
  assert.not((await idle.values()).has('gift_process_oldest_open_seconds'));
  caughtUp = true;
  assert.is((await idle.values()).get('gift_process_oldest_open_seconds'), 0);
});

test('shows a held event loop, and forgets it once it was shown', async ({ installation: { dir } }) => {
  const { show, values } = exposed();
  const shown = showProcess(show, { version: '1.2.3', dataDir: dir });
  try {
    assert.is((await values()).get('nodejs_eventloop_lag_max_seconds'), 0, 'nothing measured yet');
    // Several measurements, so that one is not the median.
    await sleep(300);
    for (const until = performance.now() + 300; performance.now() < until;);
    await sleep(100);
    const held = await values();
    assert.ok(
      held.get('nodejs_eventloop_lag_max_seconds')! > 0.2,
      String(held.get('nodejs_eventloop_lag_max_seconds')),
    );
    assert.ok(held.get('nodejs_eventloop_lag_p50_seconds')! < held.get('nodejs_eventloop_lag_max_seconds')!);
    assert.ok(held.get('nodejs_eventloop_utilization')! > 0.2);
    // What holds up this process may be another one: then it is shown next.
    const later = await eventually(async () => {
      await sleep(120);
      const next = await values();
      return next.get('nodejs_eventloop_lag_max_seconds')! < held.get('nodejs_eventloop_lag_max_seconds')! && next;
    }, 'a shorter delay');
    assert.is(later.get(`gift_build_info{version="1.2.3",node="${process.version}"}`), 1);
    assert.ok(later.get('process_resident_memory_bytes')! > later.get('nodejs_heap_size_used_bytes')!);
    assert.ok(later.get('process_cpu_seconds_total')! > 0);
    assert.ok(Math.abs(later.get('process_start_time_seconds')! - (Date.now() / 1000 - process.uptime())) < 2);
    assert.ok(later.get('gift_data_dir_free_bytes')! > 0);
  } finally {
    shown.close();
  }
  const nowhere = exposed();
  showProcess(nowhere.show, { version: '1', dataDir: '/nowhere/at/all' }).close();
  assert.not((await nowhere.values()).has('gift_data_dir_free_bytes'));
});

test('has a sample of each follower, failing or not, and of work that may lack a leader', async () => {
  const { show, values } = exposed();
  let since: Date | undefined;
  showFollowers(show, {
    health: () => [
      { part: 'projector', failing: false, failures: 1 },
      { part: 'process managers', failing: true, failures: 4, since: ago(9), why: 'no' },
    ],
    outwardHeld: () => false,
    withoutLeader: () => [
      ['read models', since],
      ['process managers', undefined],
    ],
    leaderChanges: () => [['read models', 3]],
  });
  const names = [
    'gift_follower_failing{part="projector"}',
    'gift_follower_failing{part="process managers"}',
    'gift_no_leader_seconds{work="read models"}',
    'gift_no_leader_seconds{work="process managers"}',
    'gift_leader_changes_total{work="read models"}',
  ];
  const found = await values();
  assert.equal(
    names.map((name) => found.get(name)),
    [0, 1, 0, 0, 3],
  );
  since = new Date(ago(90));
  const seconds = (await values()).get(names[2]!) ?? 0;
  assert.ok(seconds >= 90 && seconds < 100, String(seconds));
});

test.run();
