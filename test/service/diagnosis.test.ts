import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Query } from '../../src/ports/readStore.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { timeKey } from '../../src/projections/timeKey.js';
import { loadConfig } from '../../src/service/config.js';
import { type DiagnosisOptions, engineSources, type EngineSources } from '../../src/service/diagnosis.js';
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
