import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import type { GiftsPurchased } from '../../../src/domain/purchase/events.js';
import type { NotificationWork } from '../../../src/processors/notification/state.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import {
  notify,
  type NotifyDeps,
  type AttemptMemory,
  attemptMemory,
} from '../../../src/processors/notification/notifyStep.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { type House, phone } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('a notification that another process may have sent');

const GIFT = 'gift-1';
const ASKED = { attempt: 1, asked_by: 'e' };
const STARTED = { transaction_id: 't', channel: 'sms', ...ASKED };
const SENT = { channel: 'sms', provider: 'p', message_id: 'm', simulated: true, ...ASKED };

/**
 * Tells as the feed asks for it that has seen nothing of the other process. `never`: nobody has been told as far as the
 * provider knows. @returns what was asked for on the bus
 */
async function told(
  house: House,
  memory: AttemptMemory = attemptMemory(),
  { never, mayAct = () => undefined }: { never?: true; mayAct?: () => void } = {},
): Promise<string[]> {
  const asked: string[] = [];
  const purchase = {
    transaction_id: 't',
    buyer_id: 'buyer',
    product_name: 'Flat white',
    message: '',
    receivers: [phone(1)],
  } as unknown as GiftsPurchased['data'];
  const deps: NotifyDeps = {
    events: house.events,
    bus: {
      ...house.bus,
      request: async <R>(subject: string) => {
        asked.push(subject);
        return (
          never === true && subject === SUBJECTS.lookUpNotification
            ? { outcome: 'never' }
            : { outcome: 'sent', provider: 'p', message_id: 'm', simulated: true }
        ) as R;
      },
    },
    writer: openWriter(house.events, Date.now),
    contact: async () => undefined,
    numberOf: house.deps.numberOf,
    openText: house.deps.openText,
    senderName: async () => 'Ann',
    purchase: async () => purchase,
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: RETRY_POLICY,
    now: Date.now,
    mayAct,
  };
  const work: NotificationWork = {
    stage: 'due',
    transactionId: 't',
    index: 0,
    last: { id: 'e', at: '', revision: 0, correlationId: 'c' },
  };
  await notify(deps, { giftId: GIFT, work, purchase }, memory).catch((error: unknown) => {
    if (!(error instanceof NotOursError)) throw error;
  });
  return asked;
}

test('notifies where no process has started', async ({ house }) => {
  assert.equal(await told(house), [SUBJECTS.send]);
  assert.equal(await house.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

for (const [end, data] of [
  ['NotificationSent', SENT],
  ['NotificationFailed', { cause: 'no address', ...ASKED }],
] as const) {
  test(`asks no worker once ${end} is recorded, at any try`, async ({ house }) => {
    const stream = notificationStream(GIFT);
    await house.append(stream, 'NotificationStarted', STARTED);
    await house.append(stream, end, data);
    // Asked for anew since: that is a telling of its own.
    await house.append(stream, 'NotificationRequested', {
      transaction_id: 't',
      attempt: 2,
      gift_revision: 0,
      reason: 'lost',
    });
    for (const unsent of [undefined, 1]) assert.equal(await told(house, { unsent }), []);
    assert.equal(await house.types(stream), ['NotificationStarted', end, 'NotificationRequested']);
  });
}

test('looks a started attempt up and sends nothing', async ({ house }) => {
  await house.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(house), [SUBJECTS.lookUpNotification]);
  assert.equal(await house.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

/** What happened to a gift before its first notification goes out. */
for (const [cause, expires_on, event, data] of [
  ['gift is cancelled', '2999-12-31', 'GiftCancelled', { reason: 'x' }],
  ['gift is redeemed', '2999-12-31', 'GiftRedeemed', { redemption_id: 'r', merchant_id: null }],
  ['gift is blocked', '2999-12-31', 'GiftBlocked', { cause: 'support', reason: 'x' }],
  ['gift is expired', YESTERDAY, 'GiftExpired', { expires_on: YESTERDAY }],
] as const) {
  const given = async (house: House): Promise<void> => {
    await house.append(giftStream(GIFT), 'GiftIssued', { transaction_id: 't', index: 0, receiver: {}, expires_on });
    await house.append(giftStream(GIFT), event, data);
  };

  for (const channel of ['sms', 'push']) {
    test(`sends nothing where the ${cause}, after a start by ${channel} that never arrived`, async ({ house }) => {
      await given(house);
      await house.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel });
      assert.equal(await told(house, attemptMemory(), { never: true }), [SUBJECTS.lookUpNotification]);
      assert.equal(
        (await house.all('NotificationFailed')).map((failed) => failed.data),
        [{ cause, ...ASKED }],
      );
    });
  }

  test(`records what was sent before the ${cause}`, async ({ house }) => {
    await given(house);
    await house.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
    assert.equal(await told(house), [SUBJECTS.lookUpNotification]);
    assert.equal(await house.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
  });

  test(`asks no worker where the ${cause} before the start`, async ({ house }) => {
    await given(house);
    assert.equal(await told(house), []);
    assert.equal(
      (await house.events.read(notificationStream(GIFT))).map(({ type, data: of }) => [type, of]),
      [['NotificationFailed', { cause, ...ASKED }]],
    );
  });
}

test('looks up every attempt but the one known as unsent', async ({ house }) => {
  await house.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(house, { unsent: 2 }), [SUBJECTS.lookUpNotification]);
});

test('sends nothing once another process has the work, and remembers it for the next try', async ({ house }) => {
  const memory = attemptMemory();
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  assert.equal(await told(house, memory, { mayAct }), []);
  assert.equal(await house.types(notificationStream(GIFT)), ['NotificationStarted']);
  assert.equal(await told(house, memory), [SUBJECTS.send]);
});

test.run();
