/** Deliveries while processes are killed at every single step, freeze, or stand by. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { DeliveriesDeps } from '../../src/deliveries/deliveries.js';
import { type Progress, progressRecord } from '../../src/deliveries/progress.js';
import { until } from '../support/assertions/until.js';
import { recordsOf } from '../support/faults/killPoints.js';
import { lifeUntil } from '../support/faults/crashable.js';
import { type Endpoint, type Hooks, openHooks } from '../support/service/hooks.js';
import type { Received, Receiver } from '../support/service/receiver.js';

const test = suite('deliveries/kill points');
/** Of processes that lose their lease. */
const LEASE_MS = 1_000;
/** Parts of the hooks at once, each with processes of its own. */
const AT_ONCE = 6;
const MANY = 100;

let hooks: Hooks;

test.before(async () => {
  hooks = await openHooks();
});
test.after(async () => hooks.destroy());

/** A process that sees one endpoint alone, and has records of its own. */
function alone({ deps }: Hooks, { id }: Endpoint): Pick<DeliveriesDeps, 'endpoints' | 'records'> {
  const { endpoints, records } = deps;
  return {
    records: recordsOf(records, id),
    endpoints: {
      ...endpoints,
      get: async (document) => (document.includes(id) ? endpoints.get(document) : undefined),
      find: async (query) => (await endpoints.find(query)).filter((document) => document.id.includes(id)),
    },
  };
}

interface Crashable {
  readonly deps: Pick<DeliveriesDeps, 'endpoints' | 'records' | 'sender'>;
  readonly dead: boolean;
}

/** Until the `at`th record or delivery (from 1), `before` or `after` it: then nothing that it asks for is done. */
function crashable(
  { endpoints, records }: Pick<DeliveriesDeps, 'endpoints' | 'records'>,
  at: number,
  moment: 'before' | 'after',
): Crashable {
  const life = lifeUntil(at, moment);
  const { alive, effect } = life;
  const { sender } = hooks.deps;
  return {
    get dead() {
      return life.dead;
    },
    deps: {
      endpoints,
      records: {
        get: (...args) => alive(() => records.get(...args)),
        put: (key, ...args) =>
          key.startsWith('lease/') ? alive(() => records.put(key, ...args)) : effect(() => records.put(key, ...args)),
        delete: (...args) => effect(() => records.delete(...args)),
        list: (...args) => alive(() => records.list(...args)),
      },
      sender: { ...sender, send: (...args) => effect(() => sender.send(...args)) },
    },
  };
}

/** The first attempt of each `gift.issued` fails. */
async function stubborn(): Promise<Receiver & { accepted(path: string): readonly Received[] }> {
  const failed = new Set<string>();
  const accepted: Received[] = [];
  const receiver = await hooks.receiver((one, response) => {
    const fails = one.type === 'gift.issued' && !failed.has(one.id);
    failed.add(one.id);
    if (!fails) accepted.push(one);
    response.writeHead(fails ? 500 : 200).end();
  });
  return Object.assign(receiver, { accepted: (path: string) => accepted.filter((one) => one.path === path) });
}

for (const moment of ['before', 'after'] as const)
  test(`a process that dies ${moment} any one record or delivery loses nothing, and keeps the order`, async () => {
    const receiver = await stubborn();

    /** @returns whether it came to that moment */
    async function dieAt(at: number): Promise<boolean> {
      const path = `/${moment}-${at}`;
      const endpoint = await hooks.endpoint(receiver.url.replace('/hook', path));
      const gift = await hooks.gift(endpoint.client);
      await hooks.happen(gift, 2);
      await hooks.request(endpoint, { type: 'WebhookPingRequested', data: {} });
      const fed = (await hooks.fed({ kind: 'client', clientId: endpoint.client })).map(({ id }) => id);
      const part = alone(hooks, endpoint);
      const isDone = async (): Promise<boolean> => {
        const ids = new Set(receiver.accepted(path).map(({ id }) => id));
        const stored = await part.records.get<Progress>(progressRecord(endpoint.id));
        return ids.size === fed.length + 1 && stored?.value.waiting.length === 0;
      };
      const doomed = crashable(part, at, moment);
      const first = hooks.process({ ...doomed.deps, holder: 'doomed' });
      await until(async () => doomed.dead || (await isDone()), `${path}: a death, or the end`);
      const died = doomed.dead;
      // As when its time is over.
      if (died) await part.records.delete('lease/webhooks');
      const second = hooks.process({ ...part, holder: 'next' });
      await until(isDone, `${path}: the end`);
      await Promise.all([first.close(), second.close()]);
      const ofGift = receiver.accepted(path).filter(({ body }) => body.data['gift_id'] === gift);
      const firsts = [...new Map(ofGift.map(({ id, type }) => [id, type])).values()];
      assert.deepEqual(firsts, ['gift.issued', 'gift.blocked', 'gift.unblocked'], path);
      return died;
    }

    let deaths = 0;
    for (let next = 1, died = true; died && next < MANY; next += AT_ONCE) {
      const all = await Promise.all(Array.from({ length: AT_ONCE }, async (_, n) => dieAt(next + n)));
      deaths += all.filter(Boolean).length;
      died = !all.includes(false);
    }
    // Six requests, as many attempts noted, and some progress.
    assert.ok(deaths >= 12 && deaths < MANY, `it died ${deaths} times`);
  });

test('one of two processes delivers, and the other goes on where it ends', async () => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const part = alone(hooks, endpoint);
  const both = [hooks.process({ ...part, holder: 'one' }), hooks.process({ ...part, holder: 'two' })];
  for (let n = 0; n < 10; n++) await hooks.gift(endpoint.client);
  await until(() => receiver.received.length >= 20);
  await sleep(400);
  assert.equal(receiver.received.length, 20, 'each event once');
  const leading = both.filter((one) => one.status().leading);
  assert.equal(leading.length, 1);
  await leading[0]?.close();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length >= 22);
  await sleep(400);
  assert.equal(receiver.received.length, 22, 'what was done before is known');
  await Promise.all(both.map(async (one) => one.close()));
});

test('a process whose lease is over sends and writes nothing more', async () => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const part = alone(hooks, endpoint);
  const process = hooks.process({ ...part, holder: 'one', leaseMs: LEASE_MS });
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length >= 2);
  await until(async () => (await part.records.get(progressRecord(endpoint.id))) !== undefined);
  // Another process takes it, as after this one was frozen, and keeps it for a while.
  const take = async (fence: number): Promise<boolean> => {
    const lease = await part.records.get('lease/webhooks');
    const value = { holder: 'other', fence, at: hooks.clock.now() };
    const put = await part.records.put('lease/webhooks', value, { expected: lease?.version ?? 0 });
    return put !== undefined;
  };
  await until(async () => take(99));
  await until(() => !process.status().leading);
  const stored = await part.records.get(progressRecord(endpoint.id));
  await hooks.gift(endpoint.client);
  for (let n = 0; n < 10; n++) {
    assert.ok(await take(99));
    await sleep(50);
  }
  assert.equal(receiver.received.length, 2);
  assert.deepEqual(await part.records.get(progressRecord(endpoint.id)), stored);
  await until(() => receiver.received.length >= 4, 'its turn again, once the other is silent');
  await process.close();
});

test('two sessions at once end the one whose record is older', async () => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const part = alone(hooks, endpoint);
  const process = hooks.process({ ...part, holder: 'one' });
  await hooks.gift(endpoint.client);
  await until(async () => {
    const stored = await part.records.get<Progress>(progressRecord(endpoint.id));
    return stored?.value.waiting.length === 0 && receiver.received.length === 2;
  });
  const stored = await part.records.get<Progress>(progressRecord(endpoint.id));
  await part.records.put(progressRecord(endpoint.id), { ...stored?.value, failures: 3 });
  await hooks.gift(endpoint.client);
  await until(async () => {
    const now = await part.records.get<Progress>(progressRecord(endpoint.id));
    return now?.value.failures === 0 && now.value.waiting.length === 0;
  }, 'the progress, read anew');
  assert.ok(receiver.received.length >= 4);
  await process.close();
});

test.run();
