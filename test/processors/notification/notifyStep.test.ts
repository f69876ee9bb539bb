import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { NO_TEXT } from '../../../src/lib/seal.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { type AttemptMemory, notify, type NotifyDeps } from '../../../src/processors/notification/notifyStep.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { eventOf, type House, phone } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('a notification that another process may have sent');

const GIFT = 'gift-1';
const ISSUE = randomUUID();
const ASKED = { attempt: 1, asked_by: ISSUE };
const STARTED = { transaction_id: 't', channel: 'sms', ...ASKED };
const SENT = { channel: 'sms', provider: 'p', message_id: 'm', simulated: true, ...ASKED };

/**
 * Tells as the feed asks for it that has seen nothing of the other process. `never`: nobody has been told as far as the
 * provider knows. @returns what was asked for on the bus
 */
async function told(
  house: House,
  memory: AttemptMemory = { unsent: undefined },
  { never, mayAct = () => undefined }: { never?: true; mayAct?: () => void } = {},
): Promise<string[]> {
  const asked: string[] = [];
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
    purchase: async () => ({ buyer_id: 'buyer', product_name: 'Flat white', message: NO_TEXT }),
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: RETRY_POLICY,
    now: Date.now,
    mayAct,
  };
  if ((await house.types(giftStream(GIFT))).length === 0) await issue(house);
  const last = { id: ISSUE, at: '', revision: 0, correlationId: 'c' };
  await notify(deps, GIFT, last, memory).catch((error: unknown) => {
    if (!(error instanceof NotOursError)) throw error;
  });
  return asked;
}

async function issue({ events }: House, expires_on = '2999-12-31'): Promise<void> {
  const data = { transaction_id: 't', index: 0, receiver: phone(1), expires_on };
  await events.append(giftStream(GIFT), [{ ...eventOf('GiftIssued', data), id: ISSUE }], 'none');
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
    for (const unsent of [undefined, 1]) assert.equal(await told(house, { unsent }), []);
    assert.equal(await house.types(stream), ['NotificationStarted', end]);
  });

  test(`sends once more where support requests it after ${end}, at any try`, async ({ house }) => {
    const stream = notificationStream(GIFT);
    await house.append(stream, 'NotificationStarted', STARTED);
    await house.append(stream, end, data);
    const requested = { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'lost' };
    await house.append(stream, 'NotificationRequested', requested);
    assert.equal(await told(house, { unsent: 1 }), [SUBJECTS.send]);
    for (const unsent of [undefined, 2]) assert.equal(await told(house, { unsent }), []);
    assert.equal((await house.types(stream)).slice(2), [
      'NotificationRequested',
      'NotificationStarted',
      'NotificationSent',
    ]);
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
    await issue(house, expires_on);
    await house.append(giftStream(GIFT), event, data);
  };

  for (const channel of ['sms', 'push']) {
    test(`sends nothing where the ${cause}, after a start by ${channel} that never arrived`, async ({ house }) => {
      await given(house);
      await house.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel });
      assert.equal(await told(house, undefined, { never: true }), [SUBJECTS.lookUpNotification]);
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
  const memory: AttemptMemory = { unsent: undefined };
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  assert.equal(await told(house, memory, { mayAct }), []);
  assert.equal(await house.types(notificationStream(GIFT)), ['NotificationStarted']);
  assert.equal(await told(house, memory), [SUBJECTS.send]);
});

test.run();
