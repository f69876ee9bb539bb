/** What reaches a webhook endpoint, in which order, and what becomes of what does not. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { WEBHOOK_LEASE } from '../../src/deliveries/deliveries.js';
import { type AddressPolicy, UnresolvedNameError } from '../../src/deliveries/addresses.js';
import { type Progress, progressRecord } from '../../src/deliveries/progress.js';
import { openSender } from '../../src/deliveries/sender.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { until } from '../support/assertions/until.js';
import { type Endpoint, type Hooks, hooksSuite } from '../support/service/hooks.js';
import { type Answer, type Received, verify } from '../support/service/receiver.js';

const test = hooksSuite('deliveries');
const DAY_MS = 24 * 3_600_000;
const NOT_YOURS = 'no endpoint has answered meanwhile, so this does not count against yours';

const ok: Answer = (_, response) => void response.end();
const giftOf = ({ body }: Pick<Received, 'body'>): string => body.data['gift_id'] ?? '';
const idsOf = (some: readonly { readonly id: string }[]): string[] => some.map(({ id }) => id);
const sorted = (texts: readonly string[]): string[] => [...texts].sort();

/** The ids of what its client sees, oldest first. */
async function fedTo(hooks: Hooks, { client }: Endpoint): Promise<string[]> {
  return idsOf(await hooks.fed({ kind: 'client', clientId: client }));
}

test('delivers what the feed shows the client, signed, with the feed’s ids and data', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  const gift = await hooks.gift(endpoint.client);
  await hooks.happen(gift, 3);
  await hooks.gift('another');
  const fed = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  assert.equal(fed.length, 5);
  await until(() => receiver.received.length >= 5);
  await sleep(300);
  const byId = new Map(receiver.received.map((one) => [one.id, one]));
  assert.equal(receiver.received.length, 5, 'each once, and nothing of another client');
  const [secret = ''] = await hooks.secrets(endpoint);
  for (const event of fed) {
    const received = byId.get(event.id);
    const { gift: _, transaction: __, ...data } = received?.body.data ?? {};
    assert.deepEqual({ ...received?.body, data }, event);
    assert.equal(received?.headers['webhook-id'], event.id);
    verify(secret, received as Received);
  }
  const ofGift = receiver.received.filter((one) => giftOf(one) === gift);
  assert.deepEqual(
    ofGift.map(({ type }) => type),
    ['gift.issued', 'gift.blocked', 'gift.unblocked', 'gift.blocked'],
  );
});

test('tells what was bought as it was right after each event, and no person', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const gift = await hooks.gift(endpoint.client);
  await hooks.redeem(gift, 'cafe');
  await hooks.unredeem(gift, 'cafe');
  hooks.process();
  await until(() => receiver.received.length === 4);
  const told = receiver.received.map(({ type, body: { data } }) => [type, data['gift'] ?? data['transaction']]);
  const product = { product_id: 'p1', brand_id: 'b1' };
  const issued = { ...product, value: '3.50', receiver: 'user' };
  assert.deepEqual(Object.fromEntries(told), {
    'transaction.created': { status: 'pending', ...product, gifts: 1, retail: '3.50' },
    'gift.issued': { status: 'sent', ...issued },
    'gift.redeemed': { status: 'redeemed', ...issued, merchant_id: 'cafe' },
    'gift.unredeemed': { status: 'sent', ...issued, merchant_id: 'cafe' },
  });
  for (const { text } of receiver.received) assert.ok(!text.includes('"u1"') && !text.includes('"u2"'), text);
});

test('delivers nothing from before the endpoint, nor of other types', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const owner = { kind: 'client', id: 'c' } as const;
  const before = await hooks.gift('c');
  const endpoint = await hooks.endpoint(receiver.url, { owner, types: ['gift.blocked'] });
  const whole = await hooks.endpoint(receiver.url.replace('/hook', '/whole'), { owner });
  hooks.process();
  await hooks.happen(before, 3);
  await until(() => receiver.received.length >= 5);
  await sleep(200);
  const typesAt = (path: string): string[] =>
    receiver.received.filter(({ path: at }) => at === path).map(({ type }) => type);
  assert.deepEqual(typesAt('/hook'), ['gift.blocked', 'gift.blocked']);
  assert.deepEqual(typesAt('/whole'), ['gift.blocked', 'gift.unblocked', 'gift.blocked']);
  assert.notEqual(endpoint.id, whole.id);
});

test('tells a merchant of redemptions there alone', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  await hooks.endpoint(receiver.url, { owner: { kind: 'merchant', id: 'm1' } });
  hooks.process();
  const gifts = [await hooks.gift('c'), await hooks.gift('c')] as const;
  await hooks.redeem(gifts[1], 'm2');
  await hooks.redeem(gifts[0], 'm1');
  await until(() => receiver.received.length > 0);
  await sleep(200);
  assert.deepEqual(
    receiver.received.map((one) => [one.type, giftOf(one)]),
    [['gift.redeemed', gifts[0]]],
  );
});

test('keeps the order within a gift through failures, which hold up no other gift', async ({ hooks }) => {
  let refused = '';
  let fails = 6;
  const receiver = await hooks.receiver((one, response) => {
    const failing = giftOf(one) === refused && fails-- > 0;
    response.writeHead(failing ? 500 : 204).end(failing ? 'not now' : undefined);
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const first = (refused = await hooks.gift(endpoint.client));
  const second = await hooks.gift(endpoint.client);
  await hooks.happen(first, 4);
  await hooks.happen(second, 4);
  hooks.process();
  const fed = await fedTo(hooks, endpoint);
  await until(() => new Set(idsOf(receiver.received)).size === fed.length && fails <= 0);
  const of = (gift: string): Received[] => receiver.received.filter((one) => giftOf(one) === gift);
  const types = ['gift.issued', 'gift.blocked', 'gift.unblocked', 'gift.blocked', 'gift.unblocked'];
  assert.deepEqual(
    of(second).map(({ type }) => type),
    types,
  );
  const late = of(first).map(({ type }) => type);
  assert.deepEqual(late, [...Array.from({ length: 6 }, () => 'gift.issued'), ...types]);
  const doneBefore = of(second).filter(({ at }) => at < (of(first)[5]?.at ?? 0));
  assert.equal(doneBefore.length, 5, 'the other gift’s events did not wait');
  await until(async () => (await hooks.attempts(endpoint)).length === receiver.received.length);
  const failed = (await hooks.attempts(endpoint)).filter(({ status }) => status === 500);
  assert.equal(failed.length, 6);
  const [attempt] = failed;
  assert.equal(attempt?.response, 'not now');
  assert.equal(attempt.type, 'gift.issued');
  assert.ok((attempt.next_at ?? '') > attempt.at, 'it says when it is tried again');
});

test('goes on to other gifts, however many events wait behind one that fails', async ({ hooks }) => {
  let refused = '';
  const receiver = await hooks.receiver(({ body }, response) => {
    response.writeHead(body.data['gift_id'] === refused ? 422 : 200).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process({ schedule: { firstMs: 3_600_000, mostMs: 3_600_000 } });
  const gift = await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2);
  refused = gift;
  await hooks.happen(gift, 150);
  const other = await hooks.gift(endpoint.client);
  await until(() => receiver.received.some(({ body }) => body.data['gift_id'] === other), 'the other gift');
});

test('a dead, a silent and a slow endpoint hold up nobody else', async ({ hooks }) => {
  const owner = { kind: 'client', id: 'shared' } as const;
  const dead = await hooks.receiver();
  await dead.close();
  let [open, most] = [0, 0];
  const silent = await hooks.receiver((_, response) => {
    most = Math.max(most, ++open);
    response.once('close', () => open--);
  });
  const held: ServerResponse[] = [];
  const slow = await hooks.receiver((_, response) => void held.push(response));
  for (const { url } of [dead, silent, slow, silent, silent]) await hooks.endpoint(url, { owner });
  const live = await hooks.receiver();
  await hooks.endpoint(live.url, { owner });
  const deliveries = hooks.process();
  for (let n = 0; n < 20; n++) await hooks.gift('shared');
  await until(() => live.received.length >= 40);
  for (const response of held) response.end();
  await until(() => deliveries.status().endpoints.some(({ state }) => state === 'failing'));
  assert.equal(deliveries.status().endpoints.length, 6);
  await until(() => (deliveries.status().outcomes.get('delivered') ?? 0) >= 40);
  assert.ok(most > 0 && most <= 3 * 8, 'eight at once to one endpoint');
});

test('leaves an endpoint alone for as long as Retry-After says', async ({ hooks }) => {
  let busy = true;
  const receiver = await hooks.receiver((_, response) => {
    if (busy) response.writeHead(429, { 'Retry-After': '3600' });
    response.end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const gift = await hooks.gift(endpoint.client);
  await hooks.fed({ kind: 'client', clientId: endpoint.client });
  hooks.process();
  await until(() => receiver.received.length > 0);
  await sleep(300);
  const before = receiver.received.length;
  await hooks.happen(gift, 1);
  busy = false;
  hooks.clock.forward(3_500_000);
  await sleep(1_200);
  assert.equal(receiver.received.length, before);
  hooks.clock.forward(200_000);
  const fed = await fedTo(hooks, endpoint);
  await until(() => receiver.received.length - before >= fed.length);
  assert.deepEqual(sorted(idsOf(receiver.received.slice(before))), sorted(fed));
});

test('disables at 410, once, and delivers nothing more', async ({ hooks }) => {
  const receiver = await hooks.receiver((_, response) => void response.writeHead(410).end());
  const endpoint = await hooks.endpoint(receiver.url);
  const deliveries = hooks.process();
  const gift = await hooks.gift(endpoint.client);
  await until(async () => (await hooks.types(endpoint)).includes('WebhookEndpointDisabled'));
  const before = receiver.received.length;
  await hooks.happen(gift, 2);
  await sleep(500);
  assert.equal(receiver.received.length, before);
  assert.deepEqual(await hooks.types(endpoint), ['WebhookEndpointCreated', 'WebhookEndpointDisabled']);
  await until(() => deliveries.status().disabled.get('gone') === 1);
  const attempts = await hooks.attempts(endpoint);
  assert.deepEqual(
    attempts.map(({ status, next_at }) => [status, next_at]),
    attempts.map(() => [410, undefined]),
    'none says that it is tried again',
  );
  assert.ok(attempts.length > 0);
});

test('sends nothing to a client that is not active any more, and disables its endpoint', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  let active = true;
  const requested = new Set<string>();
  const deliveries = hooks.process({
    isOwnerActive: async (owner) => {
      requested.add(owner);
      return active;
    },
  });
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2);
  active = false;
  await hooks.gift(endpoint.client);
  await until(async () => (await hooks.types(endpoint)).includes('WebhookEndpointDisabled'));
  await sleep(200);
  assert.equal(receiver.received.length, 2);
  assert.deepEqual([...requested], [`client:${endpoint.client}`]);
  await until(() => deliveries.status().disabled.get('inactive') === 1);
});

test('disables after five days of nothing but failures, and counts it', async ({ hooks }) => {
  let fine = false;
  const receiver = await hooks.receiver((_, response) => void response.writeHead(fine ? 200 : 500).end());
  const endpoint = await hooks.endpoint(receiver.url);
  const deliveries = hooks.process();
  const gift = await hooks.gift(endpoint.client);
  await until(() => receiver.received.length > 2);
  hooks.clock.forward(2 * DAY_MS);
  fine = true;
  await until(() => deliveries.status().outcomes.get('delivered') === 2, 'a success');
  fine = false;
  const before = receiver.received.length;
  await hooks.happen(gift, 1);
  await until(() => receiver.received.length > before, 'a failure');
  await sleep(100);
  for (const days of [1.9, 1.9, 1.1]) {
    const tries = receiver.received.length;
    hooks.clock.forward(days * DAY_MS);
    await hooks.happen(gift, 1);
    await until(() => receiver.received.length > tries, 'a failure');
    await sleep(500);
  }
  assert.deepEqual(await hooks.types(endpoint), ['WebhookEndpointCreated'], 'a success has begun the time anew');
  hooks.clock.forward(0.2 * DAY_MS);
  await hooks.happen(gift, 1);
  await until(async () => (await hooks.types(endpoint)).includes('WebhookEndpointDisabled'));
  await until(() => deliveries.status().disabled.get('failures') === 1);
  await until(() => deliveries.status().endpoints.length === 0);
});

test('disables nobody for an outage of our own, and delivers once it is over', async ({ hooks }) => {
  let isOut = true;
  const addresses: AddressPolicy = {
    isAllowed: () => true,
    resolve: async (name) => {
      if (isOut || name === 'lost.test') throw new UnresolvedNameError('its name can not be resolved');
      return ['127.0.0.1'];
    },
  };
  const receiver = await hooks.receiver();
  const owner = { kind: 'client', id: 'shared' } as const;
  const at = (name: string): string => receiver.url.replace('127.0.0.1', name);
  const endpoint = await hooks.endpoint(at('shop.test'), { owner });
  const lost = await hooks.endpoint(at('lost.test'), { owner });
  const deliveries = hooks.process({ sender: openSender({ addresses, userAgent: 'test' }) });
  await hooks.gift('shared');
  const unreached = (): number => deliveries.status().outcomes.get('unreached') ?? 0;
  for (const days of [0, 1.9, 1.9, 1.9, 1.9]) {
    hooks.clock.forward(days * DAY_MS);
    const before = unreached();
    await until(() => unreached() > before + 8, 'attempts of both');
  }
  for (const one of [endpoint, lost]) assert.deepEqual(await hooks.types(one), ['WebhookEndpointCreated']);
  assert.equal((await hooks.attempts(endpoint)).at(-1)?.error, `its name can not be resolved; ${NOT_YOURS}`);
  isOut = false;
  await until(() => receiver.received.length === 2, 'the deliveries');
  const own = (attempt: { readonly error?: string }): boolean => attempt.error === 'its name can not be resolved';
  await until(async () => (await hooks.attempts(lost)).some(own));
  assert.ok((deliveries.status().outcomes.get('failed') ?? 0) > 0, 'now it is the other one’s own');
});

test('gives up after three days, and sends it again when it is recovered', async ({ hooks }) => {
  let lost = '';
  const receiver = await hooks.receiver((one, response) => {
    response.writeHead(giftOf(one) === lost ? 400 : 200).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const deliveries = hooks.process();
  const since = hooks.clock.now();
  const gift = (lost = await hooks.gift(endpoint.client));
  await until(() => receiver.received.filter((one) => giftOf(one) === gift).length > 2);
  hooks.clock.forward(3 * DAY_MS + 1);
  await until(() => deliveries.status().outcomes.get('given_up') === 1);
  await until(async () => {
    const last = (await hooks.attempts(endpoint)).at(-1);
    return last?.status === 400 && last.next_at === undefined;
  }, 'the attempt that none follows');
  lost = '';
  await hooks.happen(gift, 1);
  await until(() => receiver.received.at(-1)?.type === 'gift.blocked', 'a later event, which did not wait for it');
  const tries = receiver.received.length;
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since: hooks.clock.now() } });
  await sleep(500);
  assert.equal(receiver.received.length, tries, 'it happened before');
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } });
  await until(() => receiver.received.length > tries);
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } });
  await sleep(500);
  assert.deepEqual(
    receiver.received.slice(tries).map((one) => [giftOf(one), one.type]),
    [[gift, 'gift.issued']],
    'once',
  );
});

test('what is new waits for no long recovery, and loses nothing of it', async ({ hooks }) => {
  const receiver = await hooks.receiver(async (_, response) => {
    await sleep(5);
    response.writeHead(204).end();
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const since = hooks.clock.now();
  hooks.process();
  await hooks.change(endpoint, { disabled: true });
  const missed = [
    await hooks.gift(endpoint.client),
    await hooks.gift(endpoint.client),
    await hooks.gift(endpoint.client),
  ];
  for (const gift of missed) await hooks.happen(gift, 150);
  const fed = await fedTo(hooks, endpoint);
  await hooks.change(endpoint, { disabled: false });
  await until(() => hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } }).then(() => true));
  await until(() => receiver.received.length > 20, 'the recovery');
  const fresh = await hooks.gift(endpoint.client);
  await until(() => receiver.received.some((one) => giftOf(one) === fresh), 'what is new');
  const before = receiver.received.length;
  assert.ok(before < fed.length - 100, `${before} were sent first`);
  await until(() => new Set(idsOf(receiver.received)).size === fed.length + 2, 'all');
});

test('an endpoint for which the feed can not be read goes on later, and holds up no other', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const broken = await hooks.endpoint(receiver.url.replace('/hook', '/broken'));
  const other = await hooks.endpoint(receiver.url);
  let fails = true;
  let failures = 0;
  const { feed } = hooks.deps;
  hooks.process({
    feed: {
      ...feed,
      find: async (query) => {
        if (fails && JSON.stringify(query.where).includes(broken.client)) {
          failures += 1;
          throw new UnavailableError('being repaired');
        }
        return feed.find(query);
      },
    },
  });
  await hooks.gift(broken.client);
  await hooks.gift(other.client);
  await until(() => receiver.received.length >= 2 && failures > 0);
  fails = false;
  await until(() => receiver.received.filter(({ path }) => path === '/broken').length === 2, 'what had to wait');
  assert.equal(receiver.received.length, 4, 'each once: no other deliveries began anew');
});

test('sends pings and single events on request, also one that no process was there for', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const gift = await hooks.gift(endpoint.client);
  const first = hooks.process();
  await until(() => receiver.received.length === 2);
  await first.close();
  const issued = receiver.received.find((one) => giftOf(one) === gift) as Received;
  const [, position = ''] = (issued.body as unknown as { position: string }).position.split(':');
  const stranger = await hooks.endpoint(receiver.url);
  await hooks.request(endpoint, { type: 'WebhookPingRequested', data: {} });
  const resend = { type: 'WebhookResendRequested', data: { event_id: issued.id, position } } as const;
  await hooks.request(endpoint, resend);
  await hooks.request(stranger, resend);
  hooks.process({ holder: 'second' });
  await until(() => receiver.received.length >= 4);
  await sleep(300);
  const [ping, again] = receiver.received.slice(2).sort((one) => (one.type === 'ping' ? -1 : 1));
  assert.equal(receiver.received.length, 4, 'nothing for an endpoint that the event is not for');
  assert.deepEqual([ping?.type, ping?.body.data], ['ping', {}]);
  assert.equal(ping?.headers['webhook-id'], ping?.id);
  assert.equal(again?.text, issued.text);
});

test('begins anew where it is enabled again, and sends what came meanwhile on request', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  const since = hooks.clock.now();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2);
  await hooks.change(endpoint, { disabled: true });
  await hooks.endpoint('https://any.test/');
  await sleep(300);
  const missed = await hooks.gift(endpoint.client);
  await hooks.happen(missed, 3);
  await sleep(200);
  await hooks.change(endpoint, { disabled: false });
  await hooks.endpoint('https://any.test/');
  const next = await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 4);
  await sleep(300);
  assert.equal(receiver.received.filter((one) => giftOf(one) === next).length, 1);
  assert.equal(receiver.received.length, 4);
  await hooks.request(endpoint, { type: 'WebhookRecoverRequested', data: { since } });
  await until(() => receiver.received.length === 9);
  await sleep(300);
  assert.deepEqual(
    receiver.received
      .slice(4)
      .map(({ type }) => type)
      .filter((type) => type !== 'transaction.created'),
    ['gift.issued', 'gift.blocked', 'gift.unblocked', 'gift.blocked'],
  );
  assert.equal(receiver.received.length, 9, 'what was delivered is not sent again');
});

test('an endpoint that is enabled again under an attempt stops no deliveries to others', async ({ hooks }) => {
  const slow = await hooks.receiver((_, response) => void setTimeout(() => response.end(), 400));
  const endpoint = await hooks.endpoint(slow.url);
  hooks.process({ finishMs: 2_000 });
  const fence = async (): Promise<number | undefined> =>
    (await hooks.store.records.get<{ readonly fence: number }>(`lease/${WEBHOOK_LEASE}`))?.value.fence;
  for (let n = 1; n <= 3; n++) {
    const before = slow.received.length;
    await hooks.gift(endpoint.client);
    await until(() => slow.received.length > before);
    await hooks.change(endpoint, { disabled: true });
    await sleep(150);
    await hooks.change(endpoint, { disabled: false });
    const next = await hooks.gift(endpoint.client);
    await until(() => slow.received.some((one) => giftOf(one) === next));
    await sleep(600);
  }
  assert.equal(await fence(), 1, 'the deliveries did not start again');
});

test('signs with the time of the system where the service’s clock is ahead', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  hooks.clock.forward(400 * DAY_MS);
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length > 0);
  const [secret = ''] = await hooks.secrets(endpoint);
  for (const one of receiver.received) verify(secret, one);
});

test('signs with both secrets for a day after a rotation', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const [before = ''] = await hooks.secrets(endpoint);
  hooks.process();
  await hooks.rotate(endpoint);
  const [after = ''] = await hooks.secrets(endpoint);
  await sleep(200);
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2);
  for (const one of receiver.received) {
    verify(before, one);
    verify(after, one);
  }
  hooks.clock.forward(DAY_MS + 1_000);
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 4);
  const signature = receiver.received.at(-1)?.headers['webhook-signature'] as string;
  assert.equal(signature.split(' ').length, 1);
});

test('keeps a hundred attempts at most, and nothing once the endpoint is deleted', async ({ hooks }) => {
  let count = 0;
  const receiver = await hooks.receiver(
    (_, response) => void response.writeHead(count++ % 2 === 0 ? 503 : 200).end('x'.repeat(2_000)),
  );
  const endpoint = await hooks.endpoint(receiver.url);
  hooks.process();
  for (let n = 0; n < 40; n++) await hooks.gift(endpoint.client);
  await until(() => receiver.received.length >= 160, 'every event, twice');
  await until(async () => {
    const stored = await hooks.store.records.get<Progress>(progressRecord(endpoint.id));
    return stored !== undefined && stored.value.attempts.delivered + stored.value.attempts.failed >= 160;
  }, 'all of them stored');
  const attempts = await hooks.attempts(endpoint);
  assert.equal(attempts.length, 100);
  assert.equal(attempts.filter(({ status }) => status === 200).length, 50);
  assert.ok(attempts.every(({ response }) => response.length === 1_024));
  await hooks.remove(endpoint);
  await until(async () => (await hooks.store.records.list('webhook')).length === 0, 'no record');
});

test('goes on from the endpoint’s creation where the records were lost, or name what no log can have', async ({
  hooks,
}) => {
  const receiver = await hooks.receiver(ok);
  const endpoint = await hooks.endpoint(receiver.url);
  const first = hooks.process();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2);
  await first.close();
  const { records } = hooks.store;
  for (const { key } of await records.list('webhook')) await records.delete(key);
  await hooks.gift(endpoint.client);
  const second = hooks.process({ holder: 'second' });
  await until(() => receiver.received.length === 6);
  await second.close();

  const record = await records.get<Progress>(progressRecord(endpoint.id));
  await records.put(progressRecord(endpoint.id), { ...record?.value, cursor: '9'.repeat(15).padStart(16, '0') });
  await hooks.gift(endpoint.client);
  hooks.process({ holder: 'third' });
  await until(() => receiver.received.length === 12);
  assert.deepEqual(sorted([...new Set(idsOf(receiver.received))]), sorted(await fedTo(hooks, endpoint)));
});

test.run();
