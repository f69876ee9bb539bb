/** What counts in the end: what the providers' own ledgers say of a purchase, whatever happened on the way to it. */
import * as assert from 'uvu/assert';
import { type TestInstallation, phone } from '../service/installation.js';
import type { Bought } from '../service/testLog.js';
import type { RealProviders } from './realProviders.js';

/** Buys for a receiver by phone, one by push, one who shares it by the address. */
export function buyForThree(installation: TestInstallation, n: number, reference = 'pm_card_visa'): Promise<Bought> {
  installation.contacts.set(`user${n}`, {
    name: `User ${n}`,
    phone_number: null,
    device_tokens: [`device-${n}`],
    locale: 'fr',
  });
  return installation.buy([phone(n), { user_id: `user${n}` }, {}], { reference });
}

interface Parked {
  readonly entity: string;
  readonly cause: string;
}

const parkedIn = async (installation: TestInstallation): Promise<Parked[]> =>
  (await installation.all('WorkParked')).map(({ data }) => data as Parked);

/** Whether there is nothing left to do for such a purchase. */
export async function isSettled(installation: TestInstallation, { transactionId, giftIds }: Bought): Promise<boolean> {
  const types = await installation.types(`transaction-${transactionId}`);
  if (types.includes('PaymentDeclined')) return true;
  if (!types.includes('PaymentCharged')) return false;
  const parked = new Set((await parkedIn(installation)).map(({ entity }) => entity));
  const ended = await Promise.all(
    giftIds.map(async (giftId, index) => {
      if ((await installation.types(`gift-${giftId}`)).length === 0) return false;
      return (
        index === 2 ||
        parked.has(giftId) ||
        (await installation.types(`notification-${giftId}`)).some(
          (type) => type === 'NotificationSent' || type === 'NotificationFailed',
        )
      );
    }),
  );
  return ended.every(Boolean);
}

/**
 * What only a person can find out: an SMS that Twilio was asked for and may or may not have sent, with no word from it
 * since. Nothing else is parked, and nobody who was told is among them.
 */
export async function checkParked(
  installation: TestInstallation,
  { twilio }: RealProviders,
  where = '',
): Promise<void> {
  for (const { entity, cause } of await parkedIn(installation)) {
    assert.match(cause, 'nobody knows whether the receiver was notified', where);
    const url = encodeURIComponent(installation.deps.launchUrl(entity));
    assert.ok(
      twilio.undone.some(({ method, body }) => method === 'POST' && body.includes(url)),
      `parked although Twilio had answered ${where}`,
    );
    assert.is(twilio.sent(installation.deps.launchUrl(entity)), 0, where);
  }
}

/**
 * A settled purchase is charged exactly once and its gifts are issued, a declined one never; each receiver is told
 * exactly once, save who is parked.
 */
export async function checkLedgers(
  installation: TestInstallation,
  { stripe, twilio, fcm }: RealProviders,
  { transactionId, giftIds: [first = '', second = '', third = ''] }: Bought,
  n: number,
  declined: boolean,
  where = '',
): Promise<void> {
  assert.equal(
    await installation.types(`transaction-${transactionId}`),
    ['GiftsPurchased', 'ChargeStarted', declined ? 'PaymentDeclined' : 'PaymentCharged'],
    where,
  );
  assert.is(stripe.charges(transactionId), declined ? 0 : 1, `charged ${where}`);
  const intents = stripe.intents.filter(({ metadata }) => metadata['transaction_id'] === transactionId);
  assert.equal(
    intents.map(({ status }) => status),
    [declined ? 'canceled' : 'succeeded'],
    where,
  );
  const parked = (await parkedIn(installation)).some(({ entity }) => entity === first);
  assert.is(twilio.sent(installation.deps.launchUrl(first)), declined || parked ? 0 : 1, `told by SMS ${where}`);
  assert.equal([...fcm.shown(`device-${n}`).keys()], declined ? [] : [second], `told by push ${where}`);
  for (const giftId of [first, second, third])
    assert.equal(await installation.types(`gift-${giftId}`), declined ? [] : ['GiftIssued'], where);
}
