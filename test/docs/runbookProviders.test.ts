import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { withRealProviders } from '../support/providers/realProviders.js';
import { eventually } from '../support/assertions/until.js';
import { openReceiver } from '../support/service/receiver.js';
import { clientTokenOf, request, untilReady } from '../support/service/service.js';
import { buyInto, inTrouble } from '../support/service/trouble.js';

const test = suite('runbook, providers');

test('parked purchases: a charge that the provider refuses to make', async () => {
  await withRealProviders(async ({ settings, stripe }) => {
    await inTrouble('Parked purchases', settings, async (trouble) => {
      const { url = '' } = await trouble.start();
      await untilReady(url);
      const refusal = {
        error: {
          type: 'invalid_request_error',
          code: 'resource_missing',
          param: 'payment_method',
          message: 'No such PaymentMethod',
        },
      };
      stripe.fault = () => ({ kind: 'answer', answer: { status: 400, body: refusal } });
      await buyInto(trouble, url);
      trouble.env['OTHER'] = trouble.env['TRANSACTION'] ?? '';
      await buyInto(trouble, url);
      await trouble.follow(/parked show/);
      stripe.fault = () => undefined;
      await trouble.follow();
      assert.deepEqual(
        [stripe.charges(trouble.env['TRANSACTION'] ?? ''), stripe.charges(trouble.env['OTHER'] ?? '')],
        [1, 0],
      );
    });
  });
});

test('provider down: charges wait, and are made when it is back', async () => {
  await withRealProviders(async ({ settings, stripe }) => {
    await inTrouble('Provider down', settings, async (trouble) => {
      const { url = '' } = await trouble.start();
      await untilReady(url);
      stripe.fault = () => ({ kind: 'lost', when: 'undone' });
      for (let n = 0; n < 6; n++) await buyInto(trouble, url);
      await trouble.follow(/gift_process_/);
      stripe.fault = () => undefined;
      await trouble.follow();
      assert.equal(stripe.charges(trouble.env['TRANSACTION'] ?? ''), 1);
    });
  });
});

test('undelivered webhooks: an endpoint that is not there', async () => {
  const gone = await openReceiver();
  await gone.close();
  await inTrouble('Undelivered webhooks', { WEBHOOK_PRIVATE_ADDRESSES: 'allow' }, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const token = await clientTokenOf(url);
    const created = await request(`${url}/api/v2/webhook-endpoints`, 'POST', { token, body: { url: gone.url } });
    assert.equal(created.status, 201, created.text);
    for (let n = 0; n < 3; n++) await buyInto(trouble, url);
    await eventually(async () =>
      (await (await fetch(`${url}/metrics`)).text()).includes('gift_webhook_endpoints{state="failing"} 1'),
    );
    await trouble.follow();
  });
});

test.run();
