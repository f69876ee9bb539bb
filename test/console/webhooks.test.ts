/** A webhook endpoint's page: what its receiver answered, and events delivered once more. */
import assert from 'node:assert/strict';
import { eventually } from '../support/assertions/until.js';
import { CHROMIUM } from '../support/service/browser.js';
import { type ConsoleContext, consoleSuite, onConsole, signedIn } from '../support/service/console.js';
import { buyOne } from '../support/service/giftFlow.js';
import { openReceiver, type Receiver } from '../support/service/receiver.js';
import { fillIn, formOf, press } from './hands.js';

interface Context extends ConsoleContext {
  receiver: Receiver;
  endpoint: string;
}

let status = 503;

const { test, testHere } = consoleSuite<Context>('webhooks', { env: { WEBHOOK_PRIVATE_ADDRESSES: 'allow' } });
test.before(async (context) => {
  if (CHROMIUM === undefined) return;
  context.receiver = await openReceiver((_, response) => {
    response.statusCode = status;
    response.end();
  });
  const token = await context.service.clientToken();
  const body = { url: context.receiver.url, types: ['gift.issued'] };
  const made = await context.service.ask('POST', '/api/v2/webhook-endpoints', { token, body });
  assert.equal(made.status, 201, made.text);
  context.endpoint = made.json.data.id as string;
  await buyOne(context.service);
  await eventually(async () => context.receiver.received.length > 0);
});
test.after(async ({ receiver }) => receiver?.close());

testHere('delivers an attempt’s event again, and shows the attempt by itself', async (context) => {
  const { service, browser, receiver, endpoint } = context;
  await onConsole(await signedIn(browser, service.url, `/webhooks/${endpoint}`, 'sue'), async (page) => {
    const rows = page.getByRole('row').filter({ hasText: 'gift.issued' });
    await rows.filter({ hasText: '503' }).first().waitFor();
    status = 200;
    const id = receiver.received[0]?.id ?? '';
    await rows
      .first()
      .getByRole('button', { name: `Choose gift.issued ${id} for another delivery` })
      .click();
    const form = formOf(page, 'Deliver an event again');
    assert.equal(await form.getByLabel('Event’s id').inputValue(), id);
    await form.locator('input:focus').waitFor();
    await page.keyboard.type('the receiver is back');
    await press(form, 'Deliver an event again');
    await form.getByText('The event is delivered again').waitFor();
    await rows.filter({ hasText: '200' }).first().waitFor();
  });
});

testHere('delivers everything since a time that is chosen', async ({ service, browser, receiver, endpoint }) => {
  await onConsole(await signedIn(browser, service.url, `/webhooks/${endpoint}`, 'sue'), async (page) => {
    await page.getByRole('row').filter({ hasText: '200' }).first().waitFor();
    const { length } = receiver.received;
    const label = 'Deliver all since a time';
    const form = await fillIn(page, label, { Since: '2026-01-01T00:00', Reason: 'its database was lost' });
    const answered = page.waitForResponse((response) => response.url().endsWith('/recover'));
    await press(form, label);
    const { since } = (await answered).request().postDataJSON() as { readonly since: string };
    assert.match(since, /^(2025-12-31|2026-01-01)T\d\d:\d\d:00\.000Z$/);
    await form.getByText('The events are delivered').waitFor();
    assert.ok(receiver.received.length >= length);
  });
});

test.run();
