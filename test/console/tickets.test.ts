/**
 * Tickets of one gift and one purchase (docs/runbook.md), solved in a browser by whoever knows what the caller says, and
 * nothing else. The log says afterwards what was done.
 */
import assert from 'node:assert/strict';
import type { Engines } from '../../src/ports/engines.js';
import { GiveUpError } from '../../src/processors/runner/retry.js';
import { eventually } from '../support/assertions/until.js';
import { user } from '../support/fixtures/testCatalogue.js';
import { buy, buyOne, notificationOver, redeem } from '../support/service/giftFlow.js';
import { eventsOf, fillIn, find, follow, loseAnswer, press, preview } from './hands.js';
import { CONSOLE_CATALOGUE, consoleSuite, ofType, onConsole, signedIn } from '../support/service/console.js';

const CALLERS = ['07700 900501', '07700 900502'] as const;
/** Whether the disk takes no new gift. */
let fails = false;

/** Engines whose log takes no gift while it fails. */
const failing = (engines: Engines): Engines => ({
  ...engines,
  events: {
    ...engines.events,
    async append(stream, events, expected) {
      if (fails && stream.startsWith('gift-')) throw new GiveUpError('the disk takes no gift');
      return engines.events.append(stream, events, expected);
    },
  },
});

const { test, testHere } = consoleSuite('tickets', {
  env: { CHARGE_WAIT_MS: '50' },
  app: { through: failing },
  catalogue: {
    ...CONSOLE_CATALOGUE,
    users: [
      ...CONSOLE_CATALOGUE.users,
      ...CALLERS.map((phone_number, at) => user(`caller-${at + 1}`, { phone_number })),
    ],
  },
});

testHere('“Somebody else redeemed it”: reverses the redemption', async ({ service, browser }) => {
  const [phone] = CALLERS;
  const gift = await buyOne(service, 'latte', { user_id: 'caller-1' });
  assert.equal((await redeem(service, gift)).status, 201);
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await find(page, phone, 'ticket 1');
    await follow(page, gift);
    assert.match(await eventsOf(page, 'Gift redeemed').innerText(), /by till-coffee .*at bean-soho/);
    const form = await fillIn(page, 'Reverse the redemption', { Reason: 'ticket 1: a stranger' });
    assert.equal(await preview(form), 'What will happen: 1 will be done.');
    await press(form, 'Reverse the redemption');
    await form.getByText('What was done: 1 done.').waitFor();
    await eventsOf(page, 'Gift unredeemed').getByText('“ticket 1: a stranger”').waitFor();
  });
  const reversed = await ofType(service, `gift-${gift}`, 'GiftUnredeemed');
  assert.deepEqual(
    reversed.map(({ data, metadata }) => [data.reason, metadata.by.user]),
    [['ticket 1: a stranger', 'sue']],
  );
});

testHere('“Somebody else redeemed it”: replaces the gift once, though an answer is lost', async (context) => {
  const { service, browser } = context;
  const [, phone] = CALLERS;
  const gift = await buyOne(service, 'latte', { user_id: 'caller-2' });
  await notificationOver(service, gift);
  assert.equal((await redeem(service, gift)).status, 201);
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await find(page, phone, 'ticket 2');
    await follow(page, gift);
    const form = await fillIn(page, 'Replace', { Reason: 'ticket 2: a thief' });
    assert.equal(await preview(form), 'What will happen: 1 will be done.');
    await loseAnswer(page, '**/ops/actions');
    await press(form, 'Replace');
    await form.getByRole('alert').waitFor();
    assert.equal(await form.getByLabel('Reason').inputValue(), 'ticket 2: a thief');
    assert.equal((await ofType(service, `gift-${gift}`, 'GiftReplaced')).length, 1, 'it was done, unseen');
    await press(form, 'Try again');
    await form.getByText('What was done: 1 done.').waitFor();
    await page.getByText('Replaced by gift').getByRole('link').click();
    await eventsOf(page, 'Gift issued').waitFor();
  });
  const replaced = await ofType(service, `gift-${gift}`, 'GiftReplaced');
  assert.deepEqual(
    replaced.map(({ data }) => data.reason),
    ['ticket 2: a thief'],
  );
  const [{ data }] = replaced;
  assert.equal((await ofType(service, `gift-${data.replaced_by.gift_id}`, 'GiftIssued')).length, 1);
});

testHere('“The SMS never arrived”: sends it once more', async ({ service, browser }) => {
  const phone = '07700 900599';
  const gift = await buyOne(service, 'latte', { phone_number: phone });
  await notificationOver(service, gift);
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await find(page, phone, 'ticket 3');
    await follow(page, gift);
    await eventsOf(page, 'Notification sent').getByText('by sms').waitFor();
    const form = await fillIn(page, 'Resend', { Reason: 'ticket 3: lost' });
    assert.equal(await preview(form), 'What will happen: 1 will be done.');
    await press(form, 'Resend');
    await form.getByText('What was done: 1 done.').waitFor();
    // The page follows what the service does by itself.
    await eventsOf(page, 'Notification sent').nth(1).waitFor();
  });
  assert.equal((await ofType(service, `notification-${gift}`, 'NotificationSent')).length, 2);
});

testHere('“Charged but no gift”: retries its parked work, and shows the gift', async ({ service, browser }) => {
  fails = true;
  const [gift = ''] = await buy(service, 'latte', [{ user_id: 'bob' }]);
  const parked = await eventually(async () => (await ofType(service, 'parked-purchase', 'WorkParked'))[0]);
  fails = false;
  const transaction = parked.data.transaction_id as string;
  const [{ data }] = await ofType(service, `transaction-${transaction}`, 'PaymentCharged');
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await find(page, data.charge_id as string, 'ticket 4');
    await follow(page, transaction);
    await page.getByText('Purchase: issue').waitFor();
    const form = await fillIn(page, 'Retry', { Reason: 'ticket 4: there is room' });
    await press(form, 'Retry');
    await page.getByText('It has ended.').waitFor();
    await find(page, gift);
    await follow(page, gift);
    await eventsOf(page, 'Gift issued').waitFor();
  });
  assert.equal((await ofType(service, `gift-${gift}`, 'GiftIssued')).length, 1);
  const retried = await ofType(service, 'parked-purchase', 'WorkRetried');
  assert.deepEqual(
    retried.map(({ data: { entity, reason } }) => [entity, reason]),
    [[transaction, 'ticket 4: there is room']],
  );
});

testHere('“It can’t be delivered any more”: discards a group, and its purchases are declined', async (context) => {
  const { service, browser } = context;
  fails = true;
  const before = (await ofType(service, 'parked-purchase', 'WorkParked')).length;
  for (let n = 0; n < 2; n++) await buy(service, 'latte', [{ user_id: 'bob' }]);
  const parked = await eventually(async () => {
    const found = (await ofType(service, 'parked-purchase', 'WorkParked')).slice(before);
    return found.length === 2 && found;
  });
  fails = false;
  await onConsole(await signedIn(browser, service.url, '/parked', 'sue'), async (page) => {
    const form = await fillIn(page, 'Discard all 2', { Reason: 'ticket 7: bought elsewhere' });
    await form.getByText('The charge is given up for good').waitFor();
    assert.equal(await preview(form), 'What will happen: 2 will be discarded.');
    await press(form, 'Discard all 2');
    await page.getByText('What was done: 2 done.').waitFor();
    await page.getByText('Nothing waits.').waitFor();
  });
  const discarded = await ofType(service, 'parked-purchase', 'WorkDiscarded');
  assert.deepEqual(
    new Set(discarded.map(({ data: { entity, reason } }) => `${entity}: ${reason}`)),
    new Set(parked.map(({ data }) => `${data.transaction_id}: ticket 7: bought elsewhere`)),
  );
  assert.equal(discarded.length, 2);
});

test.run();
