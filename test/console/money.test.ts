/** The pages about money. */
import assert from 'node:assert/strict';
import { consoleSuite, onConsole, signedIn } from '../support/service/console.js';
import { buyOne, redeem } from '../support/service/giftFlow.js';

const { test, testHere } = consoleSuite('money');

testHere('propose the day before, also after a day of 23 hours', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/', 'aud'), async (page) => {
    // Half past midnight in London.
    await page.clock.setFixedTime('2026-03-29T23:30:00Z');
    await page.goto(`${service.url}/console#/money`);
    assert.equal(await page.getByLabel('Day', { exact: true }).inputValue(), '2026-03-29');
  });
});

testHere('lead from a total to its redemptions, also without a time zone', async ({ service, browser }) => {
  assert.equal((await redeem(service, await buyOne(service))).status, 201);
  await onConsole(await signedIn(browser, service.url, '/money', 'aud'), async (page) => {
    await page.getByLabel('Time zone of days').fill('');
    await page.getByRole('button', { name: 'Show' }).first().click();
    await page.getByRole('link', { name: /, redemptions of / }).click();
    await page.getByRole('heading', { level: 1, name: 'Redemptions' }).waitFor();
    await page.getByText('Gift redeemed').waitFor();
  });
});

test.run();
