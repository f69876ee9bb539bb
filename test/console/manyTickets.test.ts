/** Tickets of many gifts at once, solved in a browser (docs/support.md#many-at-once, #parked-work-by-group). */
import assert from 'node:assert/strict';
import { eventually } from '../support/assertions/until.js';
import { buy } from '../support/service/giftFlow.js';
import { type Json, type Service } from '../support/service/service.js';
import { fillIn, follow, formOf, press } from './hands.js';
import { consoleSuite, ofType, onConsole, signedIn } from '../support/service/console.js';

const { test, testHere } = consoleSuite('tickets of many gifts');

const RECEIVERS = 500;
const PARKED = 200;
/** Messages to this number are refused twice, and parked each time (docs/api/sandbox.md#numbers). */
const REFUSED_TWICE = '+15005550004';

const numberOf = (index: number): string => `07700 900${100 + index}`;

/** Waits until each receiver was notified so often. */
async function notified(service: Service, gifts: readonly string[], times = 1): Promise<void> {
  for (const gift of gifts)
    await eventually(async () => (await ofType(service, `notification-${gift}`, 'NotificationSent')).length === times);
}

testHere('“Three of 500 have left”: exchanges their receivers in one go', async ({ service, browser }) => {
  const gifts = await buy(
    service,
    'latte',
    Array.from({ length: RECEIVERS }, (_, at) => ({ phone_number: numberOf(at) })),
  );
  await notified(service, gifts);
  const leavers = [3, 250, 499];
  const [first = '', second = '', third = ''] = leavers.map((at) => gifts[at] ?? '');
  const [issued] = (await service.events.read(`gift-${first}`)) as [Json];
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await page.getByRole('link', { name: 'Transactions' }).click();
    await follow(page, issued.data.transaction_id as string);
    await page.getByRole('form', { name: 'Show its gifts' }).getByLabel('Reason').fill('ticket 5');
    await page.keyboard.press('Enter');
    const choice = formOf(page, 'Choose by receiver');
    await choice.getByRole('button', { name: 'Choose by receiver' }).click();
    await choice.getByLabel('Receivers').fill([...leavers.map(numberOf), '07700 900999'].join('\n'));
    await choice.getByRole('button', { name: 'Choose their gifts' }).click();
    await choice.getByText('No gift of this purchase is theirs: 07700 900999.').waitFor();
    await page.getByText('3 chosen.').waitFor();

    const label = 'Reassign each';
    const form = formOf(page, label);
    await form.getByRole('button', { name: label }).click();
    const lines = form.getByLabel('Gifts and new receivers');
    assert.deepEqual(
      (await lines.inputValue()).split('\n').map((line) => line.trim()),
      [first, second, third].map((id) => `${id},`),
    );
    await fillIn(page, label, {
      'Gifts and new receivers': `${first}, cat\n${second}, 07700 900002\n${third}, nobody-known`,
      Reason: 'ticket 5: they have left',
    });
    await form.getByRole('button', { name: 'Show what will happen' }).click();
    await form.getByText('What will happen: 2 will be done, 1 will be refused.').waitFor();
    await lines.fill(`${first}, cat\n${second}, 07700 900002\n${third}\tdan`);
    await form.getByRole('button', { name: 'Show what will happen' }).click();
    await form.getByText('What will happen: 3 will be done.').waitFor();
    await press(form, label);
    await form.getByText('What was done: 3 done.').waitFor();
  });
  const exchanged: Json[] = [];
  for (const gift of gifts) exchanged.push(...(await ofType(service, `gift-${gift}`, 'GiftReassigned')));
  assert.deepEqual(
    exchanged.map(({ stream, data }) => [stream, data.reason]),
    [first, second, third].map((id) => [`gift-${id}`, 'ticket 5: they have left']),
  );
  assert.deepEqual([exchanged[0].data.receiver, exchanged[2].data.receiver], [{ user_id: 'cat' }, { user_id: 'dan' }]);
});

testHere('“200 are parked with one cause”: retries all of the group', async ({ service, browser }) => {
  const gifts = await buy(
    service,
    'latte',
    Array.from({ length: PARKED }, () => ({ phone_number: REFUSED_TWICE })),
  );
  await eventually(async () => (await ofType(service, 'parked-notification', 'WorkParked')).length === PARKED);
  await onConsole(await signedIn(browser, service.url, '/', 'sue'), async (page) => {
    await page.getByRole('link', { name: 'Parked work' }).click();
    const retryAll = async (reason: string): Promise<void> => {
      // Those that are parked again come back by themselves.
      await page.getByRole('heading', { name: `${PARKED} × Notification: notify` }).waitFor();
      const label = `Retry all ${PARKED}`;
      const form = await fillIn(page, label, { Reason: reason });
      await form.getByRole('button', { name: 'Show what will happen' }).click();
      await form.getByText(`What will happen: ${PARKED} will be retried.`).waitFor();
      await press(form, label);
    };
    await retryAll('ticket 6: the provider is up');
    await page.getByText(`What was done: ${PARKED} done.`).waitFor();
    await eventually(async () => (await ofType(service, 'parked-notification', 'WorkParked')).length === 2 * PARKED);
    await retryAll('ticket 6: now it is');
    await page.getByText('Nothing waits.').waitFor();
  });
  await notified(service, gifts);
  const retried = await ofType(service, 'parked-notification', 'WorkRetried');
  for (const reason of ['ticket 6: the provider is up', 'ticket 6: now it is']) {
    const entities = retried.filter(({ data }) => data.reason === reason).map(({ data }) => data.entity as string);
    assert.deepEqual(entities.toSorted(), gifts.toSorted(), `${reason}: each once`);
  }
});

test.run();
