import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Query } from '../../src/ports/readStore.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { timeKey } from '../../src/projections/timeKey.js';
import { loadConfig } from '../../src/service/config.js';
import { type DiagnosisOptions, engineSources, type EngineSources } from '../../src/service/diagnosis.js';
import { accessRecorder } from '../../src/commands/recordAccess.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';

const test = suite('where a diagnosis looks');

const records = memoryRecords(Date.now);

/** Sources on a read store with these records, and with these purchases due. */
function sources(due: readonly string[], env: Readonly<Record<string, string>> = {}, active?: number): EngineSources {
  const schedule = {
    reached: async () => true,
    async find({ where = {} }: Query) {
      const { lte } = where['send_due'] as { readonly lte: string };
      const keys = due.map((at, n) => ({ id: `purchase-${n}`, position: '1', body: { send_due: timeKey(at) } }));
      return keys.filter(({ body }) => body.send_due <= lte);
    },
  };
  const read = { store: { records, active: async () => active }, models: { schedule } };
  return engineSources({
    log: () => assert.fail('the log is not read'),
    read: () => read as unknown as ReturnType<DiagnosisOptions['read']>,
    config: loadConfig(env),
    projections: PROJECTIONS,
  });
}
/** Routines of a log that is older than they may be. `work` leaves records in it. */
async function routinesAfter(
  work: (recorder: ReturnType<typeof accessRecorder>) => Promise<void>,
): ReturnType<EngineSources['routines']> {
  const events = memoryEvents();
  let at = minutesAgo(20 * 24 * 60);
  const recorder = accessRecorder(events, () => at);
  await recorder.shown({ by: {} }, { what: 'gift history', asked: {}, personal: false, reason: null }, 1);
  at = minutesAgo(1);
  await work(recorder);
  const config = loadConfig({
    PAYMENTS: 'stripe',
    STRIPE_SECRET_KEY: 'sk_test_1',
    STRIPE_WEBHOOK_SECRET: 'whsec_1',
  });
  return engineSources({
    log: () => ({ events }) as unknown as ReturnType<DiagnosisOptions['log']>,
    read: () => assert.fail('the read store is not read'),
    config,
    projections: PROJECTIONS,
  }).routines();
}

test('takes neither a backup nor a reconciliation that failed for one that was done', async () => {
  const requests = ['gift backup', 'gift payments reconcile'].map((what) => ({
    what,
    asked: { day: '2026-05-04' },
    personal: false,
    reason: null,
  }));
  const failed = await routinesAfter(async (recorder) => {
    // A killed one has no end.
    for (const request of requests) await recorder.start({ by: {} }, request);
    for (const request of requests) await (await recorder.start({ by: {} }, request)).end(0, null, false);
  });
  assert.deepEqual(
    failed.map(({ of, last }) => [of, last]),
    [
      ['backup', undefined],
      ['reconciliation', undefined],
    ],
  );
  const done = await routinesAfter(async (recorder) => {
    for (const request of requests) await (await recorder.start({ by: {} }, request)).end(0, null, true);
  });
  assert.ok(done.every(({ last }) => last !== undefined));
});

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

test('counts what was to be sent five minutes ago, once the read model serves', async () => {
  const due = [minutesAgo(6), minutesAgo(90), minutesAgo(4), minutesAgo(-60)];
  assert.deepEqual(await sources(due, {}, 1).lateSends(), { count: 2, more: false, example: 'purchase-0' });
  assert.deepEqual(await sources([], {}, 1).lateSends(), { count: 0, more: false });
  assert.deepEqual(await sources(due).lateSends(), { count: 0, more: false });
});

test('tells by how much the clock is ahead of each that renewed a lease last', async () => {
  await records.put('lease/projector', { holder: 'machine:1:a', fence: 1, at: minutesAgo(1) });
  await records.put('lease/webhooks', { holder: null, fence: 1, at: minutesAgo(1) });
  const [one, ...others] = await sources([]).clocks();
  assert.deepEqual([one?.process, others], ['machine:1:a', []]);
  assert.ok((one?.aheadMs ?? 0) >= 60_000);
});

test('knows which engines are servers, and looks at the disk unless all are', async () => {
  const keys = Object.fromEntries(
    ['TOKEN_KEY', 'HASH_KEY', 'MASTER_KEY', 'SEAL_KEY'].map((name) => [name, 'k'.repeat(40)]),
  );
  const all = {
    ...keys,
    EVENTSTORE_URL: 'esdb://db:2113',
    MONGODB_URL: 'mongodb://db/gift',
    KEYS_URL: 'mongodb://db/keys',
    NATS_URL: 'nats://db:4222',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
  };
  const remote = sources([], all);
  assert.deepEqual([...remote.servers], ['event store', 'read store', 'bus', 'key store']);
  assert.equal(await remote.freeBytes(), undefined);
  const embedded = sources([], { DATA_DIR: '/tmp' });
  assert.deepEqual([...embedded.servers], []);
  assert.ok(((await embedded.freeBytes()) ?? 0) > 0);
});

test.run();
