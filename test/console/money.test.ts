/** The pages about money. */
import assert from 'node:assert/strict';
import { consoleSuite, onConsole, signedIn } from '../support/service/console.js';

const { test, testHere } = consoleSuite('money');

testHere('propose the day before, also after a day of 23 hours', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/', 'aud'), async (page) => {
    // Half past midnight in London.
    await page.clock.setFixedTime('2026-03-29T23:30:00Z');
    await page.goto(`${service.url}/console#/money`);
    assert.equal(await page.getByLabel('Day', { exact: true }).inputValue(), '2026-03-29');
  });
});

test.run();
