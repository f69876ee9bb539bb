/** The log's pages: its tail by filters, and a request's trace. */
import assert from 'node:assert/strict';
import { eventually } from '../support/assertions/until.js';
import { consoleSuite, onConsole, signedIn } from '../support/service/console.js';
import { buyOne, redeem } from '../support/service/giftFlow.js';
import type { Json } from '../support/service/service.js';
import { eventsOf } from './hands.js';

const { test, testHere } = consoleSuite('log');

testHere('follow what is appended, and show what a new filter matches', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, '/log', 'aud'), async (page) => {
    await eventsOf(page, 'Gift issued').first().waitFor();
    await page.getByLabel('Stream').fill(`gift-${gift}`);
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('1 events, up to the end of the log.').waitFor();
    assert.equal((await redeem(service, gift)).status, 201);
    await eventsOf(page, 'Gift redeemed').waitFor();
    assert.equal(await eventsOf(page, 'Gifts purchased').count(), 0);
  });
});

testHere('begin at a time after a position was taken out again', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await onConsole(await signedIn(browser, service.url, '/log', 'aud'), async (page) => {
    await page.getByLabel('Stream').fill(`gift-${gift}`);
    await page.getByLabel('From position').fill((await service.events.end()) ?? '');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('0 events, up to the end of the log.').waitFor();
    await page.getByLabel('From position').fill('');
    await page.getByLabel('From time').fill('2026-01-01');
    await page.getByRole('button', { name: 'Show' }).click();
    await eventsOf(page, 'Gift issued').first().waitFor();
  });
});

testHere('request a filter that is refused once', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/log', 'aud'), async (page) => {
    await page.getByText('up to the end of the log').waitFor();
    const calls: string[] = [];
    page.on('request', (request) => calls.push(request.url()));
    await page.getByLabel('From time').fill('nonsense');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByText('0 events.').count(), 1);
    // Twice the pause between two looks.
    await page.waitForTimeout(4_500);
    assert.equal(calls.filter((url) => url.includes('nonsense')).length, 1);
    await page.getByLabel('From time').fill('');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('up to the end of the log').waitFor();
  });
});

testHere('stop following while nobody is signed in', async ({ service, browser }) => {
  const one = await signedIn(browser, service.url, '/log', 'aud');
  await onConsole(one, async (page) => {
    await page.getByText('up to the end of the log').waitFor();
    const [cookie] = await one.context.cookies();
    const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
    assert.equal((await service.ask('POST', '/console/session/end', { body: {}, headers })).status, 200);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const calls: string[] = [];
    page.on('request', (request) => calls.push(request.url()));
    // Twice the pause between two looks.
    await page.waitForTimeout(4_500);
    assert.deepEqual(calls, []);
  });
});

testHere('show a request’s trace as a tree, and stop the search for it', async ({ service, browser }) => {
  const gift = await buyOne(service);
  await eventually(async () => (await service.events.read(`gift-${gift}`)).length > 0);
  const [{ correlation_id: id }] = (
    await service.ask('GET', `/ops/log?stream=gift-${gift}`, { token: await service.userToken('sue') })
  ).json.data as Json[];
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    // The first page ends early, and the second one is not answered.
    let calls = 0;
    await page.route('**/ops/log?*', async (route) => {
      calls += 1;
      if (calls === 2) return;
      if (calls > 2) return route.continue();
      const { data, ...rest } = (await (await route.fetch()).json()) as { readonly data: readonly Json[] };
      const json = { ...rest, data: data.slice(0, 1), next: data[0]?.position as unknown, end: false };
      await route.fulfill({ json });
    });
    await page.goto(`${service.url}/console#/log/trace/${String(id)}`);
    await page.getByText(/Searching the log up to position \S+/).waitFor();
    await eventsOf(page, 'Gifts purchased').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('What is later is not shown.').waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    const purchased = eventsOf(page, 'Gifts purchased');
    await purchased.getByRole('listitem').filter({ hasText: 'Gift issued' }).first().waitFor();
    await page.getByText(/log was searched|Searching/).waitFor({ state: 'detached' });
    assert.equal(await page.getByText('Gifts purchased', { exact: true }).count(), 1);
  });
});

test.run();
