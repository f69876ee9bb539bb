/** Which attempts are stored for the owner of an endpoint, and for support (docs/api/webhooks.md#webhook-endpoints). */
import assert from 'node:assert/strict';
import { deferred } from '../../src/lib/async/deferred.js';
import { until } from '../support/assertions/until.js';
import { hooksSuite } from '../support/service/hooks.js';

const test = hooksSuite('deliveries/attempts');

test('shows what failed at a url that was changed during the attempt, and counts it', async ({ hooks }) => {
  const changed = deferred<void>();
  const receiver = await hooks.receiver(({ path }, response) => {
    if (path === '/new') response.end();
    else void changed.promise.then(() => response.writeHead(500).end());
  });
  const endpoint = await hooks.endpoint(receiver.url);
  const deliveries = hooks.process();
  await hooks.gift(endpoint.client);
  await until(() => receiver.received.length === 2, 'the attempts in progress');
  await hooks.change(endpoint, { url: receiver.url.replace('/hook', '/new') });
  await hooks.request(endpoint, { type: 'WebhookPingRequested', data: {} });
  await until(() => receiver.received.some(({ type, path }) => type === 'ping' && path === '/new'), 'the change');
  changed.resolve();
  await until(async () => (await hooks.attempts(endpoint)).filter(({ status }) => status === 200).length === 3);
  const failed = (await hooks.attempts(endpoint)).filter(({ status }) => status === 500);
  assert.deepEqual(
    failed.map(({ next_at }) => next_at !== undefined),
    [true, true],
    'both are tried again',
  );
  assert.equal(deliveries.status().outcomes.get('failed'), 2);
});

test.run();
