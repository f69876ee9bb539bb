/** What the part `webhooks` of a process says of itself (docs/runbook.md#failing-part). */
import assert from 'node:assert/strict';
import { UnavailableError } from '../../src/ports/unavailable.js';
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

test.run();
