import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import {
  changeOwnEndpoint,
  createEndpoint,
  deleteOwnEndpoint,
  disableFailingEndpoint,
  type EndpointDeps,
  openEndpoint,
  openOwnEndpoint,
  requestOwnDelivery,
  rotateOwnSecret,
} from '../../src/commands/webhookEndpoints.js';
import { type EndpointOwner, MOST_A_DAY, webhookEndpointStream } from '../../src/domain/webhookEndpoint.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

const test = suite('commands/webhook endpoints');
const SHOP: EndpointOwner = { kind: 'client', id: 'shop' };
const SETTINGS = { url: 'https://shop.example/hooks', types: null, description: null };
const context = (commandId: string, bodyHash = 'h'): CommandContext => ({
  commandId,
  bodyHash,
  correlationId: 'c',
  by: { client: 'shop' },
  now: '2026-05-04T12:00:00.000Z',
});
const none = async (): Promise<void> => undefined;

async function installation(): Promise<EndpointDeps & { readonly events: MemoryEvents }> {
  const deps = { events: memoryEvents(), subjects: memorySubjects() };
  await createEndpoint(deps, { id: 'e', owner: SHOP }, SETTINGS, context('create'), none);
  return deps;
}
const typesOf = ({ log }: MemoryEvents): string[] => log.map(({ type }) => type.replace('Webhook', ''));

test('creates once: a repeated command adds nothing, and asks for no room', async () => {
  const deps = await installation();
  const full = (): Promise<void> => Promise.reject(new Error('full'));
  const again = await createEndpoint(deps, { id: 'e', owner: SHOP }, SETTINGS, context('create'), full);
  assert.equal(again.replayed, true);
  assert.deepEqual(typesOf(deps.events), ['EndpointCreated']);
  const { secret_id, ...data } = deps.events.log.map((event) => event.data)[0] as { readonly secret_id: string };
  assert.deepEqual(data, { owner: SHOP, ...SETTINGS });
  assert.equal((await deps.subjects.secrets([secret_id])).size, 1);
  await assert.rejects(createEndpoint(deps, { id: 'f', owner: SHOP }, SETTINGS, context('other'), full), /full/);
});

test('shows no endpoint to a repeat of its creation by another owner', async () => {
  const deps = await installation();
  for (const owner of [
    { ...SHOP, id: 'other' },
    { ...SHOP, kind: 'merchant' as const },
  ]) {
    const repeat = createEndpoint(deps, { id: 'e', owner }, SETTINGS, context('create'), none);
    await assert.rejects(repeat, refusal('idempotency_key_reused'));
  }
  assert.deepEqual(typesOf(deps.events), ['EndpointCreated']);
});

test('shows an endpoint to its owner and to support only', async () => {
  const deps = await installation();
  const found = await openOwnEndpoint(deps, { id: 'e', owner: SHOP }, context('x'));
  assert.deepEqual([found.id, found.owner, found.history.length], ['e', SHOP, 1]);
  for (const owner of [
    { ...SHOP, id: 'other' },
    { ...SHOP, kind: 'merchant' as const },
  ])
    await assert.rejects(
      openOwnEndpoint(deps, { id: 'e', owner }, context('x')),
      refusal('webhook_endpoint_not_found'),
    );
  assert.deepEqual((await openEndpoint(deps, 'e', context('x'))).owner, SHOP);
  await assert.rejects(openEndpoint(deps, 'f', context('x')), refusal('webhook_endpoint_not_found'));
});

test('a deleted endpoint is found by the commands that ran on it, and by no other', async () => {
  const deps = await installation();
  const endpoint = await openEndpoint(deps, 'e', context('delete'));
  await deleteOwnEndpoint(deps, endpoint, context('delete'));
  assert.equal((await openEndpoint(deps, 'e', context('delete'))).history.length, 2);
  await assert.rejects(openEndpoint(deps, 'e', context('new')), refusal('webhook_endpoint_not_found'));
  await assert.rejects(openEndpoint(deps, 'e', context('delete', 'other')), refusal('idempotency_key_reused'));
});

test('each command appends its event once', async () => {
  const deps = await installation();
  const endpoint = async (commandId: string): ReturnType<typeof openEndpoint> =>
    openEndpoint(deps, 'e', context(commandId));
  const description = 'tills';
  for (const replayed of [false, true]) {
    const changed = await changeOwnEndpoint(deps, await endpoint('change'), { description }, context('change'));
    const rotated = await rotateOwnSecret(deps, await endpoint('rotate'), context('rotate'), 60);
    const ping = { type: 'WebhookPingRequested', data: {} } as const;
    const pinged = await requestOwnDelivery(deps, await endpoint('ping'), ping, context('ping'));
    const disabled = await disableFailingEndpoint(deps, { id: 'e', url: SETTINGS.url }, 'gone', context('disable'));
    assert.deepEqual(
      [changed, rotated, pinged, disabled].map((one) => one.replayed),
      Array(4).fill(replayed),
    );
  }
  assert.deepEqual(typesOf(deps.events), [
    'EndpointCreated',
    'EndpointChanged',
    'SecretRotated',
    'PingRequested',
    'EndpointDisabled',
  ]);
  const [, , rotated, , disabled] = deps.events.log;
  assert.match(JSON.stringify(rotated?.data), /"previous_until":"2026-05-04T12:01:00.000Z"/);
  assert.deepEqual(disabled?.data, { cause: 'gone' });
});

test('decides on what was read, and again on what another command has done since', async () => {
  const deps = await installation();
  const stale = await openEndpoint(deps, 'e', context('x'));
  await disableFailingEndpoint(deps, { id: 'e', url: SETTINGS.url }, 'failures', context('disable'));
  const ping = { type: 'WebhookPingRequested', data: {} } as const;
  await assert.rejects(requestOwnDelivery(deps, stale, ping, context('ping')), refusal('webhook_endpoint_disabled'));
  await deleteOwnEndpoint(deps, stale, context('delete'));
  assert.deepEqual(typesOf(deps.events), ['EndpointCreated', 'EndpointDisabled', 'EndpointDeleted']);
});

test('refuses more pings of a day than an endpoint may have', async () => {
  const deps = await installation();
  const ping = { type: 'WebhookPingRequested', data: {} } as const;
  const most = MOST_A_DAY.WebhookPingRequested;
  deps.events.given(webhookEndpointStream('e'), ...Array<typeof ping>(most - 1).fill(ping));
  const now = '2026-01-01T12:00:00.000Z';
  const send = async (id: string): Promise<unknown> =>
    requestOwnDelivery(deps, await openEndpoint(deps, 'e', context(id)), ping, { ...context(id), now });
  await send('last');
  await assert.rejects(send('more'), refusal('too_many_webhook_requests'));
});

test.run();
