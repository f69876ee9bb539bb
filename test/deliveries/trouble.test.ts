/** What the part `webhooks` of a process says of itself (docs/runbook.md#failing-part). */
import assert from 'node:assert/strict';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { entryId, type FeedEntry, feedProjection } from '../../src/projections/feed/feed.js';
import { collectionOf } from '../../src/runtime/readmodels/projection.js';
import { followers } from '../../src/runtime/supervision/followers.js';
import { until } from '../support/assertions/until.js';
import { silent } from '../support/fixtures/projecting.js';
import { hooksSuite } from '../support/service/hooks.js';

const test = hooksSuite('deliveries/trouble');

test('is well again once what could not be signed is delivered, though nothing more happens', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const parts = followers({ logger: silent });
  const { signingSecrets } = hooks.deps;
  let isAway = true;
  hooks.process({
    followers: parts,
    signingSecrets: async (...args) => {
      if (isAway) throw new UnavailableError('the key store is away');
      return signingSecrets(...args);
    },
  });
  const gift = await hooks.gift(endpoint.client);
  await until(() => parts.health().some(({ failing }) => failing), 'a failing part');
  isAway = false;
  hooks.clock.forward(30_000);
  await until(() => receiver.received.some(({ body }) => body.data['gift_id'] === gift));
  await until(() => parts.health().every(({ failing }) => !failing), 'its end');
  assert.equal(receiver.received.length, 2);
});

test('an entry that names a gift which the log lacks holds up no other endpoint', async ({ hooks }) => {
  const receiver = await hooks.receiver();
  const endpoint = await hooks.endpoint(receiver.url);
  const other = await hooks.endpoint(receiver.url);
  await hooks.gift(endpoint.client);
  const fed = await hooks.fed({ kind: 'client', clientId: endpoint.client });
  const issued = fed.find(({ type }) => type === 'gift.issued')?.position.split(':')[1];
  assert.ok(issued !== undefined);
  const feed = collectionOf(feedProjection);
  const [entry] = await hooks.store.getMany(feed, [entryId(issued)]);
  assert.ok(entry !== undefined);
  const { data } = entry.body as FeedEntry;
  const document = { ...entry, body: { ...entry.body, data: { ...data, gift_id: 'forged' } } };
  await hooks.store.correct(feed, [{ id: entry.id, expected: entry.position, document }]);
  const parts = followers({ logger: silent });
  hooks.process({ followers: parts });
  await until(() => parts.health().some(({ why }) => why !== undefined), 'an attempt at the entry');
  const gift = await hooks.gift(other.client);
  await until(() => receiver.received.some(({ body }) => body.data['gift_id'] === gift));
  assert.deepEqual(
    parts.health().map(({ failures }) => failures),
    [0],
  );
});

test.run();
