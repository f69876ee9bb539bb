/**
 * What an endpoint's owner changes or requests holds from the next attempt on
 * (docs/api/webhooks.md#webhook-deliveries).
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Deliveries } from '../../src/deliveries/deliveries.js';
import { type Progress, progressRecord } from '../../src/deliveries/progress.js';
import { deferred } from '../../src/lib/async/deferred.js';
import type { FeedEvent } from '../../src/projections/feed/feedEvent.js';
import type { Body } from '../../src/ports/readStore.js';
import {
  type EndpointDocument,
  endpointDocument,
  webhookEndpointsProjection,
} from '../../src/projections/webhookEndpoints.js';
import { repair } from '../../src/runtime/readmodels/maintenance/repair.js';
import { collectionOf, type Projection } from '../../src/runtime/readmodels/projection.js';
import { until } from '../support/assertions/until.js';
import { depsFor, unwatched } from '../support/fixtures/rebuilding.js';
import { type Endpoint, type Hooks, hooksSuite } from '../support/service/hooks.js';
import type { Received } from '../support/service/receiver.js';

const test = hooksSuite('deliveries/changes');
const HOUR_S = 3_600;

const typesOf = (some: readonly Pick<Received, 'type'>[]): string[] => some.map(({ type }) => type);

const progressOf = async (hooks: Hooks, { id }: Endpoint): Promise<Progress | undefined> =>
  (await hooks.store.records.get<Progress>(progressRecord(id)))?.value;

const resendOf = (event: FeedEvent) =>
  ({
    type: 'WebhookResendRequested',
    data: { event_id: event.id, position: event.position.slice(event.position.indexOf(':') + 1) },
  }) as const;

test('passes over waiting events whose type is taken off, which hold back no others', async ({ hooks }) => {
  const receiver = await hooks.receiver((one, response) => {
    response.writeHead(one.type === 'gift.blocked' ? 500 : 200).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const since = hooks.clock.now();
  // No retry falls due within the test.
  const first = hooks.process({ schedule: { firstMs: 3_600_000, mostMs: 3_600_000 } });
  const gift = await hooks.gift(endpoint.client);
  await hooks.happen(gift, 2);
  await until(() => typesOf(receiver.received).includes('gift.blocked'));
  const fed = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  assert.ok(!typesOf(receiver.received).includes('gift.unblocked'), 'it waits for the one before');
  await hooks.change(endpoint, { types: ['gift.unblocked', 'gift.issued'] });
  await until(() => typesOf(receiver.received).includes('gift.unblocked'), 'what it held back');
  assert.equal(receiver.received.filter(({ type }) => type === 'gift.blocked').length, 1);
  const blocked = fed.find(({ type }) => type === 'gift.blocked');
  const issued = fed.find(({ type }) => type === 'gift.issued');
  assert.ok(blocked !== undefined && issued !== undefined);
  await hooks.request(endpoint, resendOf(blocked));
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } });
  await hooks.request(endpoint, resendOf(issued));
  await until(() => receiver.received.filter(({ type }) => type === 'gift.issued').length === 2, 'the last request');
  await until(async () => (await progressOf(hooks, endpoint))?.waiting.length === 0);
  assert.equal(receiver.received.filter(({ type }) => type === 'gift.blocked').length, 1, 'neither asks for it');
  await first.close();
});

test('sends a type from when it is added on', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url, { types: ['gift.redeemed'] });
  hooks.process();
  const gift = await hooks.gift(endpoint.client);
  await hooks.redeem(gift, 'm1');
  await until(() => receiver.received.length === 1);
  await hooks.change(endpoint, { types: ['gift.blocked'] });
  await until(async () => (await hooks.types(endpoint)).includes('WebhookEndpointChanged'));
  await hooks.happen(gift, 1);
  await until(() => receiver.received.length === 2);
  assert.deepEqual(typesOf(receiver.received), ['gift.redeemed', 'gift.blocked']);
});

test('sends the events of an added type that follow the change on the log, though deliveries hear of it later', async ({
  hooks,
}) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url, { types: ['gift.redeemed'] });
  const { process, hear } = late(hooks);
  await until(() => process.status().endpoints.length === 1);
  await hooks.change(endpoint, { types: ['gift.blocked', 'gift.redeemed'] });
  const gift = await hooks.gift(endpoint.client);
  await hooks.happen(gift, 1);
  await hooks.redeem(gift, 'm1');
  await hooks.fed({ kind: 'client', clientId: endpoint.client });
  // The feed is looked at every 50 ms.
  await sleep(300);
  hear();
  await until(() => typesOf(receiver.received).includes('gift.redeemed'), 'a later event');
  assert.deepEqual(typesOf(receiver.received), ['gift.blocked', 'gift.redeemed']);
});

test('sends events that were read while a change of the types held that was taken back since', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url, { types: ['gift.redeemed'] });
  const { process, hear } = late(hooks);
  await until(() => process.status().endpoints.length === 1);
  await hooks.change(endpoint, { types: ['gift.blocked', 'gift.redeemed'] });
  await hooks.redeem(await hooks.gift(endpoint.client), 'm1');
  await hooks.fed({ kind: 'client', clientId: endpoint.client });
  // The feed is looked at every 50 ms.
  await sleep(300);
  await hooks.change(endpoint, { types: ['gift.redeemed'] });
  hear();
  await until(() => receiver.received.length === 1);
});

test('disables no endpoint for the answer of a url that was changed, though deliveries hear of it later', async ({
  hooks,
}) => {
  const changed = deferred<void>();
  const receiver = await hooks.receiver(({ path }, response) => {
    if (path === '/new') response.end();
    else void changed.promise.then(() => response.writeHead(410).end());
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const { process, hear } = late(hooks);
  await until(() => process.status().endpoints.length === 1);
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2, 'the attempts in progress');
  await hooks.change(endpoint, { url: receiver.url.replace('/hook', '/new') });
  changed.resolve();
  hear();
  await until(() => receiver.received.filter(({ path }) => path === '/new').length === 2, 'both at the new url');
  assert.ok(!(await hooks.types(endpoint)).includes('WebhookEndpointDisabled'));
});

/** A process whose deliveries hear of no event of an endpoint before `hear`. */
function late(hooks: Hooks): { readonly process: Deliveries; readonly hear: () => void } {
  const { promise, resolve } = deferred<void>();
  const { events } = hooks;
  const follow: typeof events.follow = async function* (...request) {
    await promise;
    yield* events.follow(...request);
  };
  return {
    process: hooks.process({ events: Object.assign(Object.create(events) as typeof events, { follow }) }),
    hear: resolve,
  };
}

test('takes a malformed Retry-After for none', async ({ hooks }) => {
  const receiver = await hooks.receiver((_, response) => {
    response.writeHead(receiver.received.length < 3 ? 503 : 200, { 'retry-after': '45.5' }).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  await hooks.gift(endpoint.client);
  await until(() => new Set(receiver.received.map(({ id }) => id)).size === 2 && receiver.received.length >= 4);
  assert.equal((await progressOf(hooks, endpoint))?.pausedUntil, undefined);
});

test('starts afresh at a new url, though the old one asked for a pause', async ({ hooks }) => {
  const receiver = await hooks.receiver((one, response) => {
    response.writeHead(one.path === '/hook' ? 503 : 200, { 'retry-after': String(HOUR_S) }).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const first = hooks.process({ holder: 'first' });
  await hooks.gift(endpoint.client);
  await until(async () => (await progressOf(hooks, endpoint))?.pausedUntil !== undefined);
  await hooks.change(endpoint, { url: receiver.url.replace('/hook', '/new') });
  await until(() => receiver.received.filter(({ path }) => path === '/new').length === 2);
  await until(async () => (await progressOf(hooks, endpoint))?.waiting.length === 0);
  const { pausedUntil, failures } = (await progressOf(hooks, endpoint)) ?? {};
  assert.deepEqual([pausedUntil, failures], [undefined, 0]);
  await first.close();
});

test('starts afresh at a url that was changed while no process was there', async ({ hooks }) => {
  const receiver = await hooks.receiver((one, response) => {
    response.writeHead(one.path === '/hook' ? 503 : 200, { 'retry-after': String(HOUR_S) }).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const first = hooks.process({ holder: 'first' });
  await hooks.gift(endpoint.client);
  await until(async () => (await progressOf(hooks, endpoint))?.pausedUntil !== undefined);
  await first.close();
  await hooks.change(endpoint, { url: receiver.url.replace('/hook', '/new') });
  hooks.process({ holder: 'second' });
  await until(() => receiver.received.filter(({ path }) => path === '/new').length === 2);
});

test('sends what its owner requests in spite of a pause, once, and nothing else', async ({ hooks }) => {
  const receiver = await hooks.receiver((_, response) => {
    response.writeHead(503, { 'retry-after': String(HOUR_S) }).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const since = hooks.clock.now();
  const gift = await hooks.gift(endpoint.client);
  // Of events that are not read at once, the second would wait for the pause that the first one's answer requests.
  await hooks.fed({ kind: 'client', clientId: endpoint.client });
  hooks.process();
  await until(async () => (await progressOf(hooks, endpoint))?.pausedUntil !== undefined);
  await until(() => receiver.received.length === 2, 'both that went at once');
  await hooks.happen(gift, 1);
  const sent = async (what: string, count: number): Promise<void> => {
    await until(() => receiver.received.length >= count, what);
    const ended = async (): Promise<number> => {
      const { delivered, failed } = (await progressOf(hooks, endpoint))?.attempts ?? { delivered: 0, failed: 0 };
      return delivered + failed;
    };
    await until(async () => (await ended()) >= count, `${what}, ended`);
    assert.equal(receiver.received.length, count, what);
  };
  await hooks.request(endpoint, { type: 'WebhookPingRequested', data: {} });
  await sent('a ping', 3);
  const fed = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  const blocked = fed.find(({ type }) => type === 'gift.blocked');
  assert.ok(blocked !== undefined);
  await hooks.request(endpoint, resendOf(blocked));
  await sent('what goes before it', 4);
  assert.equal(receiver.received.at(-1)?.type, 'gift.issued', 'the order within the gift holds');
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } });
  await sent('the recovery: the purchase and the gift', 6);
});

test('sends what its owner requests during an attempt at it that fails then, once', async ({ hooks }) => {
  const requested = deferred<void>();
  const receiver = await hooks.receiver((_, response) => {
    void requested.promise.then(() => response.writeHead(503, { 'retry-after': String(HOUR_S) }).end());
  });
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2, 'the attempts in progress');
  const fed = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  const issued = fed.find(({ type }) => type === 'gift.issued');
  assert.ok(issued !== undefined);
  await hooks.request(endpoint, resendOf(issued));
  await until(async () => (await progressOf(hooks, endpoint))?.requested !== undefined, 'the request to be stored');
  requested.resolve();
  await until(() => receiver.received.length === 3, 'the requested attempt');
  await until(async () => (await progressOf(hooks, endpoint))?.attempts.failed === 3, 'its end');
  assert.deepEqual(receiver.received.map(({ id }) => id).filter((id) => id === issued.id).length, 2);
  await hooks.request(endpoint, { type: 'WebhookPingRequested', data: {} });
  await until(() => typesOf(receiver.received).includes('ping'), 'a later request');
  assert.equal(receiver.received.length, 4, 'nothing more was sent');
});

const FALSIFIED: Readonly<Record<string, (body: Body) => Body>> = {
  'has another url': (body) => ({ ...body, url: (body as EndpointDocument).url.replace('/hook', '/false') }),
  'is quarantined': () => ({ $quarantined: { position: '1', cause: 'a test' } }),
};

for (const [what, falsify] of Object.entries(FALSIFIED))
  test(`follows the repair of an endpoint whose document ${what}`, async ({ hooks }) => {
    const receiver = await hooks.receiver();
    const endpoint = await hooks.endpoint(receiver.url);
    const id = endpointDocument(endpoint.id);
    await correct(hooks, id, falsify);
    const deliveries = hooks.process();
    await until(() => deliveries.status().leading);
    await hooks.gift(endpoint.client);
    await repaired(hooks, id);
    await until(async () => {
      await hooks.gift(endpoint.client);
      return receiver.received.some(({ path }) => path === '/hook');
    }, 'a delivery by the repaired document');
  });

test('delivers to no endpoint that the log lacks, once its document is repaired', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const forged = endpointDocument('forged');
  await correct(hooks, forged, () => ({}), endpointDocument(endpoint.id));
  const deliveries = hooks.process();
  await until(() => deliveries.status().endpoints.length === 2, 'both lines');
  await repaired(hooks, forged);
  await until(() => deliveries.status().endpoints.length === 1, 'its end');
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2, 'the true endpoint');
});

test('leaves no record of an endpoint that was deleted while no process delivered', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const first = hooks.process({ holder: 'first' });
  await hooks.gift(endpoint.client);
  await until(async () => (await progressOf(hooks, endpoint))?.attempts.delivered === 2);
  await first.close();
  await hooks.remove(endpoint);
  await hooks.fed({ kind: 'client', clientId: endpoint.client });
  hooks.process({ holder: 'second' });
  await until(async () => (await hooks.store.records.list('webhook')).length === 0, 'no record');
});

/** Changes a stored document behind the projector's back. @param model the document that a new one is like */
async function correct({ store }: Hooks, id: string, falsify: (body: Body) => Body, model = id): Promise<void> {
  const collection = collectionOf(webhookEndpointsProjection);
  const [found] = await store.getMany(collection, [model]);
  assert.ok(found !== undefined);
  const { position } = found;
  const body =
    model === id ? falsify(found.body) : { ...found.body, endpoint_id: id.slice(id.indexOf('/') + 1), ...falsify({}) };
  const expected = model === id ? position : undefined;
  assert.deepEqual(await store.correct(collection, [{ id, expected, document: { id, position, body } }]), [true]);
}

async function repaired({ events, store }: Hooks, id: string): Promise<void> {
  const projection = webhookEndpointsProjection as unknown as Projection;
  const [outcome] = (await repair(depsFor(events, store), projection, [id], unwatched())) ?? [];
  assert.match(outcome?.outcome ?? '', /repaired|removed/);
}

test.run();
