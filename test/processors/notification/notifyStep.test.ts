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
import { type TestInstallation, phone } from '../../support/service/installation.js';
import { eventOf } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('a notification that another process may have sent');

const GIFT = 'gift-1';
const ISSUE = randomUUID();
const REQUESTED = { attempt: 1, asked_by: ISSUE };
const STARTED = { transaction_id: 't', channel: 'sms', ...REQUESTED };
const SENT = { channel: 'sms', provider: 'p', message_id: 'm', simulated: true, ...REQUESTED };

/**
 * Tells as the feed asks for it that has seen nothing of the other process. `never`: nobody has been told as far as the
 * provider knows. @returns what was asked for on the bus
 */
async function told(
  installation: TestInstallation,
  memory: AttemptMemory = { unsent: undefined },
  { never, mayAct = () => undefined }: { never?: true; mayAct?: () => void } = {},
): Promise<string[]> {
  const requested: string[] = [];
  const deps: NotifyDeps = {
    events: installation.events,
    bus: {
      ...installation.bus,
      request: async <R>(subject: string) => {
        requested.push(subject);
        return (
          never === true && subject === SUBJECTS.lookUpNotification
            ? { outcome: 'never' }
            : { outcome: 'sent', provider: 'p', message_id: 'm', simulated: true }
        ) as R;
      },
    },
    writer: openWriter(installation.events, Date.now),
    contact: async () => undefined,
    numberOf: installation.deps.numberOf,
    openText: installation.deps.openText,
    senderName: async () => 'Ann',
    purchase: async () => ({ buyer_id: 'buyer', product_name: 'Flat white', message: NO_TEXT }),
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: RETRY_POLICY,
    now: Date.now,
    mayAct,
  };
  if ((await installation.types(giftStream(GIFT))).length === 0) await issue(installation);
  const last = { id: ISSUE, at: '', revision: 0, correlationId: 'c' };
  await notify(deps, GIFT, last, memory).catch((error: unknown) => {
    if (!(error instanceof NotOursError)) throw error;
  });
  return requested;
}

async function issue({ events }: TestInstallation, expires_on = '2999-12-31'): Promise<void> {
  const data = { transaction_id: 't', index: 0, receiver: phone(1), expires_on };
  await events.append(giftStream(GIFT), [{ ...eventOf('GiftIssued', data), id: ISSUE }], 'none');
}

test('notifies where no process has started', async ({ installation }) => {
  assert.equal(await told(installation), [SUBJECTS.send]);
  assert.equal(await installation.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

for (const [end, data] of [
  ['NotificationSent', SENT],
  ['NotificationFailed', { cause: 'no address', ...REQUESTED }],
] as const) {
  test(`asks no worker once ${end} is recorded, at any try`, async ({ installation }) => {
    const stream = notificationStream(GIFT);
    await installation.append(stream, 'NotificationStarted', STARTED);
    await installation.append(stream, end, data);
    for (const unsent of [undefined, 1]) assert.equal(await told(installation, { unsent }), []);
    assert.equal(await installation.types(stream), ['NotificationStarted', end]);
  });

  test(`sends once more where support requests it after ${end}, at any try`, async ({ installation }) => {
    const stream = notificationStream(GIFT);
    await installation.append(stream, 'NotificationStarted', STARTED);
    await installation.append(stream, end, data);
    const requested = { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'lost' };
    await installation.append(stream, 'NotificationRequested', requested);
    assert.equal(await told(installation, { unsent: 1 }), [SUBJECTS.send]);
    for (const unsent of [undefined, 2]) assert.equal(await told(installation, { unsent }), []);
    assert.equal((await installation.types(stream)).slice(2), [
      'NotificationRequested',
      'NotificationStarted',
      'NotificationSent',
    ]);
  });
}

test('looks a started attempt up and sends nothing', async ({ installation }) => {
  await installation.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(installation), [SUBJECTS.lookUpNotification]);
  assert.equal(await installation.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

/** What happened to a gift before its first notification goes out. */
for (const [cause, expires_on, event, data] of [
  ['gift is cancelled', '2999-12-31', 'GiftCancelled', { reason: 'x' }],
  ['gift is redeemed', '2999-12-31', 'GiftRedeemed', { redemption_id: 'r', merchant_id: null }],
  ['gift is blocked', '2999-12-31', 'GiftBlocked', { cause: 'support', reason: 'x' }],
  ['gift is expired', YESTERDAY, 'GiftExpired', { expires_on: YESTERDAY }],
] as const) {
  const given = async (installation: TestInstallation): Promise<void> => {
    await issue(installation, expires_on);
    await installation.append(giftStream(GIFT), event, data);
  };

  for (const channel of ['sms', 'push']) {
    test(`sends nothing where the ${cause}, after a start by ${channel} that never arrived`, async ({
      installation,
    }) => {
      await given(installation);
      await installation.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel });
      assert.equal(await told(installation, undefined, { never: true }), [SUBJECTS.lookUpNotification]);
      assert.equal(
        (await installation.all('NotificationFailed')).map((failed) => failed.data),
        [{ cause, ...REQUESTED }],
      );
    });
  }

  test(`records what was sent before the ${cause}`, async ({ installation }) => {
    await given(installation);
    await installation.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
    assert.equal(await told(installation), [SUBJECTS.lookUpNotification]);
    assert.equal(await installation.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
  });

  test(`asks no worker where the ${cause} before the start`, async ({ installation }) => {
    await given(installation);
    assert.equal(await told(installation), []);
    assert.equal(
      (await installation.events.read(notificationStream(GIFT))).map(({ type, data: of }) => [type, of]),
      [['NotificationFailed', { cause, ...REQUESTED }]],
    );
  });
}

test('looks up every attempt but the one known as unsent', async ({ installation }) => {
  await installation.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(installation, { unsent: 2 }), [SUBJECTS.lookUpNotification]);
});

test('sends nothing once another process has the work, and remembers it for the next try', async ({ installation }) => {
  const memory: AttemptMemory = { unsent: undefined };
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  assert.equal(await told(installation, memory, { mayAct }), []);
  assert.equal(await installation.types(notificationStream(GIFT)), ['NotificationStarted']);
  assert.equal(await told(installation, memory), [SUBJECTS.send]);
});

test.run();
