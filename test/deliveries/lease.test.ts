/** Deliveries where the lease's renewal is late, is lost, or comes back (docs/design.md#leases). */
import assert from 'node:assert/strict';
import { deferred } from '../../src/lib/async/deferred.js';
import type { Records } from '../../src/ports/readStore.js';
import { abandonedRecords } from '../../src/deliveries/abandoned.js';
import { type Progress, progressRecord } from '../../src/deliveries/progress.js';
import { leaseGate } from '../support/faults/leaseGate.js';
import { until } from '../support/assertions/until.js';
import { hooksSuite } from '../support/service/hooks.js';
import type { Receiver } from '../support/service/receiver.js';

const test = hooksSuite('deliveries/lease');
/** Short enough to run out within a test. */
const LEASE_MS = 600;
const WEBHOOKS = 'lease/webhooks';

/** Each counts once: what was sent when a lease was lost is sent again. */
const eventsIn = ({ received }: Receiver): number => new Set(received.map(({ id }) => id)).size;

test('delivers everything where attempts end in a gap of the lease that is no loss of it', async ({ hooks }) => {
  const answers = deferred<void>();
  const receiver = await hooks.receiver(async (_, response) => {
    await answers.promise;
    response.end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const gate = leaseGate(hooks.deps.records, WEBHOOKS);
  hooks.process({ records: gate.records, leaseMs: LEASE_MS });
  for (let n = 0; n < 10; n++) await hooks.gift(endpoint.client);
  const fed = (await hooks.fed({ kind: 'client', clientId: endpoint.client })).map(({ id }) => id);
  await until(() => receiver.received.length >= 8, 'as many attempts as go at once');
  await gate.gap(LEASE_MS, async () => {
    answers.resolve();
    await until(async () => (await hooks.attempts(endpoint)).length >= 8, 'the ends of these attempts');
  });
  await until(() => eventsIn(receiver) === fed.length, 'every event');
});

test('goes on where another process had the lease, and is gone', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const gate = leaseGate(hooks.deps.records, WEBHOOKS);
  const deliveries = hooks.process({ records: gate.records, leaseMs: LEASE_MS });
  await hooks.gift(endpoint.client);
  await until(() => eventsIn(receiver) === 2);
  await gate.loss(async () => {
    await until(() => !deliveries.status().leading);
    await hooks.gift(endpoint.client);
  });
  await until(() => eventsIn(receiver) === 4, 'what happened meanwhile');
});

test('is told as stalled while something is due and nothing is done', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const goOn = deferred<void>();
  const { sender } = hooks.deps;
  const deliveries = hooks.process({
    stalledMs: 50,
    sender: { ...sender, send: async (...args) => goOn.promise.then(async () => sender.send(...args)) },
  });
  const state = (): string | undefined => deliveries.status().endpoints[0]?.state;
  await until(() => state() === 'working');
  await hooks.gift(endpoint.client);
  await until(() => state() === 'stalled');
  goOn.resolve();
  await until(() => eventsIn(receiver) === 2);
  await until(() => state() === 'working');
});

test('keeps what was given up until the progress that has it waiting is stored', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const { records } = hooks.deps;
  await hooks.gift(endpoint.client);
  const [bought, issued] = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  assert.ok(bought !== undefined && issued !== undefined);
  const position = issued.position.slice(issued.position.indexOf(':') + 1);
  const given = abandonedRecords(endpoint.id) + position;
  await records.put(given, { position, key: issued.data.gift_id, at: issued.created_at });
  const gate = leaseGate(records, WEBHOOKS);
  const listed = deferred<void>();
  const goOn = deferred<void>();
  const slow: Records = {
    ...gate.records,
    async list<V>(prefix: string, ...rest: [number?, string?]) {
      const found = await gate.records.list<V>(prefix, ...rest);
      if (prefix !== abandonedRecords(endpoint.id) || found.length === 0) return found;
      listed.resolve();
      await goOn.promise;
      return found;
    },
  };
  const first = hooks.process({ records: slow, leaseMs: LEASE_MS });
  await until(() => eventsIn(receiver) === 2);
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since: bought.created_at } });
  await listed.promise;
  await gate.gap(LEASE_MS, async () => {
    goOn.resolve();
    await until(() => !first.status().leading);
    const stored = await records.get<Progress>(progressRecord(endpoint.id));
    const waits = stored?.value.waiting.some((item) => item.position === position) === true;
    assert.ok(waits || (await records.get(given)) !== undefined, 'it is lost');
  });
  await until(() => receiver.received.filter(({ id }) => id === issued.id).length >= 2, 'it is sent again');
});

test.run();
