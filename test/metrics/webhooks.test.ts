import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deliveryTally, type EndpointStatus } from '../../src/deliveries/tally.js';
import { showWebhooks } from '../../src/metrics/webhooks.js';
import { exposed } from '../support/service/exposed.js';

const test = suite('metrics/webhooks');
const ago = (seconds: number): string => new Date(Date.now() - seconds * 1_000).toISOString();

test('counts outcomes from zero, and shows endpoints where this process delivers', async () => {
  const { show, values } = exposed();
  const tally = deliveryTally();
  showWebhooks(show, tally.status);
  const first = await values();
  assert.is(first.get('gift_webhook_deliveries_total{outcome="given_up"}'), 0);
  assert.is(first.get('gift_webhook_endpoints_disabled_total{cause="failures"}'), 0);
  assert.not([...first.keys()].some((name) => name.startsWith('gift_webhook_endpoints{')));
  const endpoints: EndpointStatus[] = [
    { state: 'working', waiting: 2, oldest: { untried: ago(5), failed: ago(50) } },
    { state: 'working', waiting: 0, oldest: {} },
    { state: 'failing', waiting: 9, oldest: { untried: ago(900), failed: ago(100) } },
  ];
  tally.leads(() => endpoints);
  tally.count('delivered');
  tally.count('delivered');
  tally.countDisabled('gone');
  const found = await values();
  assert.is(found.get('gift_webhook_deliveries_total{outcome="delivered"}'), 2);
  assert.is(found.get('gift_webhook_endpoints_disabled_total{cause="gone"}'), 1);
  assert.is(found.get('gift_webhook_endpoints{state="working"}'), 2);
  assert.is(found.get('gift_webhook_endpoints{state="failing"}'), 1);
  assert.is(found.get('gift_webhook_endpoints{state="stalled"}'), 0);
  const age = (state: string): number =>
    Math.floor(found.get(`gift_webhook_oldest_undelivered_seconds{state="${state}"}`) ?? Number.NaN);
  assert.is(age('untried'), 5);
  assert.is(age('failed'), 100);
  tally.stands();
  assert.not([...(await values()).keys()].some((name) => name.startsWith('gift_webhook_endpoints{')));
});

test('shows nothing where this process delivers no webhooks', async () => {
  const { show, values } = exposed();
  showWebhooks(show, () => undefined);
  assert.is((await values()).size, 0);
});

test.run();
