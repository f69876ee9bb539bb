/** What the pages promise of everything that changes something or shows persons (docs/console.md#rules-of-its-pages). */
import assert from 'node:assert/strict';
import { accessStream } from '../../src/domain/access.js';
import { buy, buyOne, notificationOver, purchaseOf } from '../support/service/giftFlow.js';
import { type Json, type Service } from '../support/service/service.js';
import { engineAway, eventsOf, fillIn, find, formOf, holdCall, keysOf, loseAnswer, press, preview } from './hands.js';
import { consoleSuite, onConsole, signedIn } from '../support/service/console.js';

const { test, testHere } = consoleSuite('actions');

const typesOf = async (service: Service, gift: string): Promise<string[]> =>
  (await service.events.read(`gift-${gift}`)).map(({ type }) => type);

testHere('ask for a reason before they do anything', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const calls = keysOf(page, /\/ops\/actions/);
    const labels = ['Resend', 'Reassign', 'Extend', 'Block', 'Unblock', 'Reverse the redemption', 'Replace'];
    for (const label of labels) {
      const form = await fillIn(page, label, {});
      await form.getByRole('button', { name: 'Show what will happen' }).click();
      assert.equal(await form.getByLabel('Reason').evaluate((field) => field.matches(':invalid')), true, label);
      await form.getByRole('button', { name: label, exact: true }).click();
    }
    assert.deepEqual(calls, []);
  });
  assert.deepEqual(await typesOf(service, gift), ['GiftIssued']);
});

testHere('refuse a reason of spaces as the service does, and keep it', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const form = await fillIn(page, 'Block', { Reason: '  ' });
    await form.getByRole('button', { name: 'Show what will happen' }).click();
    await form.getByRole('alert').getByText('reason must not be empty').waitFor();
  });
});

for (const [what, fail, said] of [
  ['an engine is away', engineAway, 'A part of it is away for now: try again in a moment.'],
  ['an answer is lost', loseAnswer, 'can’t be reached'],
] as const)
  testHere(`keep what was typed where ${what}, and do it once under one key`, async ({ service, browser }) => {
    const gift = await buyOne(service);
    await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
      const typed = { Ticket: 'T-1', Reason: 'reported as stolen' };
      const form = await fillIn(page, 'Block', typed);
      await preview(form);
      const keys = keysOf(page, /\/ops\/actions/);
      await fail(page, '**/ops/actions');
      await press(form, 'Block');
      await form.getByRole('alert').getByText(said).waitFor();
      for (const [label, value] of Object.entries(typed))
        assert.equal(await form.getByLabel(label).inputValue(), value);
      await press(form, 'Try again');
      await form.getByText('What was done: 1 done.').waitFor();
      const [first, second] = keys;
      assert.match(first ?? '', /^[\da-f]{32}/);
      assert.equal(second, first);

      // Other values are another command.
      await fillIn(page, 'Block', { Ticket: 'T-2', Reason: 'reported as stolen' });
      await preview(form);
      await press(form, 'Block');
      await eventsOf(page, 'Gift blocked').nth(1).waitFor();
      assert.notEqual(keys.at(-1), first);
    });
    assert.deepEqual(await typesOf(service, gift), ['GiftIssued', 'GiftBlocked', 'GiftBlocked']);
  });

testHere('keep what was typed, and its key, while another page is shown', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const form = await fillIn(page, 'Block', { Ticket: 'T-3', Reason: 'reported as stolen' });
    await preview(form);
    const keys = keysOf(page, /\/ops\/actions/);
    await loseAnswer(page, '**/ops/actions');
    await press(form, 'Block');
    await form.getByRole('alert').waitFor();
    await page.getByRole('link', { name: 'Find' }).click();
    await page.getByRole('heading', { name: 'Find' }).waitFor();
    await page.goBack();
    await form.getByRole('button', { name: 'Try again' }).waitFor();
    assert.deepEqual(
      [await form.getByLabel('Ticket').inputValue(), await form.getByLabel('Reason').inputValue()],
      ['T-3', 'reported as stolen'],
    );
    await press(form, 'Try again');
    await form.getByText('What was done: 1 done.').waitFor();
    assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
  });
  assert.deepEqual(await typesOf(service, gift), ['GiftIssued', 'GiftBlocked']);
});

testHere('do nothing while Enter is held down, until the preview was read', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const form = await fillIn(page, 'Block', { Reason: 'reported as stolen' });
    await form.getByLabel('Reason').focus();
    await page.keyboard.down('Enter');
    await form.getByText('What will happen: 1 will be done.').waitFor();
    for (let repeat = 0; repeat < 5; repeat++) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    assert.deepEqual(await typesOf(service, gift), ['GiftIssued']);
    await page.keyboard.press('Enter');
    await form.getByText('What was done: 1 done.').waitFor();
  });
  assert.deepEqual(await typesOf(service, gift), ['GiftIssued', 'GiftBlocked']);
});

testHere('show no preview of values that were changed while it was made', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const [soon = '', late = ''] = [30, 9_000].map((days) =>
      new Date(Date.now() + (365 + days) * 86_400_000).toISOString().slice(0, 10),
    );
    const form = await fillIn(page, 'Extend', { 'New last valid day': soon, Reason: 'a complaint' });
    const goOn = await holdCall(page, '**/ops/actions');
    await form.getByRole('button', { name: 'Show what will happen' }).click();
    await form.getByLabel('New last valid day').fill(late);
    goOn();
    await form.locator('button[aria-busy=false]').waitFor();
    assert.match(await preview(form), /1 will be refused/);
  });
  assert.deepEqual(await typesOf(service, gift), ['GiftIssued']);
});

testHere('show nothing found for a text that another one has replaced', async ({ service, browser }) => {
  const [gift, other] = [await buyOne(service), await buyOne(service)];
  await onConsole(await signedIn(browser, service.url, '/find', 'sue'), async (page) => {
    const goOn = await holdCall(page, `**/ops/gifts/${gift}/history`);
    const named = page.getByLabel('What was named');
    await named.fill(gift);
    await page.keyboard.press('Enter');
    await named.fill(other);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: other }).waitFor();
    const late = page.waitForResponse(`**/ops/gifts/${gift}/history`);
    goOn();
    await (await late).finished();
    await page.getByRole('heading', { level: 1 }).click();
    assert.equal(await page.getByRole('link', { name: gift }).count(), 0);
    assert.equal(await page.getByRole('link', { name: other }).count(), 1);
  });
});

testHere('refund a single gift on its page', async ({ service, browser }) => {
  const [gift = '', other = ''] = await buy(service, 'latte', [{ user_id: 'bob' }, { user_id: 'cat' }]);
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    const form = await fillIn(page, 'Refund', { Reason: 'a complaint' });
    await press(form, 'Refund');
    await form.getByRole('status').getByText('1 gift').waitFor();
  });
  assert.ok((await typesOf(service, gift)).includes('GiftCancelled'));
  assert.ok(!(await typesOf(service, other)).includes('GiftCancelled'));
});

testHere('say that a part is away where a page can’t be loaded, and load it then', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, '/find', 'sue'), async (page) => {
    await engineAway(page, '**/history');
    await page.getByLabel('What was named').fill(gift);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('A part of it is away for now').waitFor();
    await page.keyboard.press('Enter');
    await engineAway(page, '**/history');
    await page.getByRole('link', { name: gift }).click();
    await page.getByRole('alert').getByText('A part of it is away for now').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await eventsOf(page, 'Gift issued').waitFor();
  });
});

testHere('mask personal fields until a reason is given, which is recorded', async ({ service, browser }) => {
  const number = '07700 900321';
  const gift = await buyOne(service, 'latte', { phone_number: number });
  await notificationOver(service, gift);
  const reason = 'ticket 7: which number was it';
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await find(page, gift);
    await page.getByRole('link', { name: gift }).click();
    const bought = eventsOf(page, 'Gifts purchased');
    const open = async (): Promise<void> => {
      await bought.getByText('Gifts purchased').click();
      await bought.getByText('Receivers').waitFor();
    };
    const isShown = async (): Promise<boolean> => (await page.locator('body').innerText()).includes('+447700900321');
    await open();
    assert.equal(await isShown(), false);
    const form = formOf(page, 'Show personal data');
    await form.getByRole('button', { name: 'Show personal data' }).click();
    await form.getByLabel('Reason').fill(reason);
    await form.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText(`Personal data is shown, for the reason “${reason}”.`).waitFor();
    // The event that was open stays so.
    await bought.getByText('+447700900321').waitFor();
    await page.getByRole('button', { name: 'Mask it' }).click();
    // Nothing of the former answer stays, open or not.
    await bought.getByText('Receivers').waitFor({ state: 'hidden' });
    await open();
    assert.equal(await isShown(), false);
  });
  const records = (await service.events.read(accessStream(new Date().toISOString()))) as Json[];
  const shown = records.filter(({ data }) => data.reason === reason);
  assert.deepEqual(
    new Set(shown.map(({ data, metadata }) => `${data.asked.giftId} ${data.personal} ${metadata.by.user}`)),
    new Set([`${gift} true sue`]),
  );
});

testHere('find whose number it is as a contact book copies it', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    for (const number of ['\u202a07700 900002\u202c', '07700\u00a0900002', '+44\u00a07700\u2011900002']) {
      await find(page, number, 'a call');
      await page.getByText('Taken for a number.').waitFor();
    }
    const bought = await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', [{ user_id: 'bob' }]),
    });
    await page.goto(`${service.url}/console#/transactions/${bought.json.data.id}`);
    const gifts = page.getByRole('form', { name: 'Show its gifts' });
    await gifts.getByLabel('Reason').fill('a call');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Choose by receiver' }).click();
    await page.getByLabel('Receivers').fill('\u202a07700 900002\u202c');
    await page.getByRole('button', { name: 'Choose their gifts' }).click();
    await page.getByText('1 chosen.').waitFor();
  });
});

testHere('say that a gift is blocked until the last of its blocks has ended', async ({ service, browser }) => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const token = await service.userToken('sue');
  const act = async (action: string, ticket: string): Promise<void> => {
    const body = { reason: 'reported as stolen', ticket };
    const done = await service.ask('POST', `/ops/gifts/${gift}/${action}`, { token, body });
    assert.equal(done.status, 200, done.text);
  };
  await act('block', 'T-1');
  await act('block', 'T-2');
  await act('unblock', 'T-1');
  await onConsole(await signedIn(browser, service.url, `/gifts/${gift}`, 'sue'), async (page) => {
    await eventsOf(page, 'Gift unblocked').waitFor();
    assert.equal(await page.getByText('The gift is blocked').count(), 1);
    await act('unblock', 'T-2');
    await page.reload();
    await eventsOf(page, 'Gift unblocked').nth(1).waitFor();
    assert.equal(await page.getByText('The gift is blocked').count(), 0);
  });
});

test.run();
