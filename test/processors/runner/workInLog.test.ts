import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { MANAGERS } from '../../../src/processors/managers.js';
import { type WorkInLog, workInLog } from '../../../src/processors/runner/workInLog.js';
import { type Bought, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('open work as the status tells it');

const going = new AbortController().signal;
const openIn = ({ events }: TestLog, from?: string, late = going): Promise<WorkInLog> =>
  workInLog(events, MANAGERS as never, from, late);
const counts = ({ inFlight }: WorkInLog): object => Object.fromEntries(inFlight);

const charge = (log: TestLog, { transactionId }: Bought): Promise<void> =>
  log.append(transactionStream(transactionId), 'PaymentCharged', { amount: 250, provider: 'p', charge_id: 'c' });
async function issue(log: TestLog, { transactionId, giftIds }: Bought, receiver: object): Promise<void> {
  const [gift = ''] = giftIds;
  const issued = { transaction_id: transactionId, index: 0, receiver, purchased_at: '', expires_on: '2099-01-01' };
  await log.append(giftStream(gift), 'GiftIssued', issued);
}
const parked = (transactionId: string, entity: string, step: string): object => ({
  entity,
  transaction_id: transactionId,
  step,
  times: 1,
  reason: 'r',
});

test('counts what is open by the name that it would be parked under, with the oldest event and the checkpoint', async ({
  log,
}) => {
  assert.equal(await openIn(log), {
    inFlight: new Map(),
    size: 0,
    checkpoint: undefined,
    oldestAt: undefined,
    whole: true,
  });
  const done = await log.buy([{}]);
  await charge(log, done);
  await issue(log, done, {});
  const behind = await log.events.end();
  const pending = await log.buy([{}], { at: '2026-01-02T00:00:00.000Z' });
  const told = await log.buy([{ user_id: 'bea' }], { at: '2026-01-01T00:00:00.000Z' });
  await charge(log, told);
  await issue(log, told, { user_id: 'bea' });
  const stream = transactionStream(told.transactionId);
  await log.append(stream, 'RefundRequested', { refund_id: 'r', gift_ids: told.giftIds, voided: false, reason: 'x' });
  await log.append(stream, 'RefundedAtProvider', { provider: 'p', charge_id: 'c', amount: 1, total: 1 });
  await log.append(stream, 'DisputeOpened', { provider: 'p', dispute_id: 'dp', amount: 1, reason: 'r' });
  const found = await openIn(log);
  assert.equal(counts(found), { purchase: 1, notification: 1, refund: 2, dispute: 1 });
  assert.equal(
    [found.size, found.checkpoint, found.oldestAt, found.whole],
    [4, behind, '2026-01-02T00:00:00.000Z', true],
    'the instances: a purchase, a notification, a refund, the reversals of a transaction',
  );
  assert.equal(counts(await openIn(log, await log.events.end())), {}, 'from behind all of it');
  await log.append(transactionStream(pending.transactionId), 'PaymentDeclined', { provider: 'p', code: 'no' });
  assert.equal(counts(await openIn(log)), { notification: 1, refund: 2, dispute: 1 });
});

test('settles by the streams what was done before the checkpoint', async ({ log }) => {
  const bought = await log.buy([{ user_id: 'bea' }]);
  const { transactionId, giftIds } = bought;
  const [gift = ''] = giftIds;
  const stream = transactionStream(transactionId);
  await charge(log, bought);
  await issue(log, bought, { user_id: 'bea' });
  const [issued] = await log.events.read(giftStream(gift));
  const dispute = { provider: 'p', dispute_id: 'dp' };
  const attempt = { attempt: 1, asked_by: issued?.id };
  await log.append(notificationStream(gift), 'NotificationStarted', {
    transaction_id: 't',
    channel: 'push',
    ...attempt,
  });
  await log.append(notificationStream(gift), 'NotificationSent', { channel: 'push', message_id: 'm', ...attempt });
  await log.append(stream, 'DisputeOpened', { ...dispute, amount: 1, reason: 'r' });
  await log.append(stream, 'DisputeSettled', { dispute_id: 'dp', blocked: true, gifts: 1 });
  await log.append(stream, 'RefundedAtProvider', { provider: 'p', charge_id: 'c', amount: 1, total: 1 });
  await log.append(stream, 'ProviderRefundSettled', { total: 1, cancelled: 0, vouchered: 0, difference: 1 });
  const from = await log.events.end();
  await log.append('parked-purchase', 'WorkRetried', parked(transactionId, transactionId, 'issue'));
  await log.append('parked-notification', 'WorkRetried', parked(transactionId, gift, 'notify'));
  await log.append(stream, 'DisputeClosed', { ...dispute, outcome: 'lost' });
  const settled = await openIn(log, from);
  assert.equal([counts(settled), settled.size, settled.checkpoint], [{}, 0, await log.events.end()]);
  await log.append('parked-refund', 'WorkRetried', parked(transactionId, transactionId, 'provider refund'));
  assert.equal(counts(await openIn(log, from)), { refund: 1 }, 'a retry looks for more gifts to cancel');
  // The same work, of which the streams say that it is not done.
  const other = await log.buy([{ user_id: 'bea' }]);
  await charge(log, other);
  const end = await log.events.end();
  const otherStream = transactionStream(other.transactionId);
  await log.append('parked-purchase', 'WorkRetried', parked(other.transactionId, other.transactionId, 'issue'));
  await log.append('parked-notification', 'WorkRetried', parked(other.transactionId, other.giftIds[0] ?? '', 'notify'));
  await log.append(otherStream, 'DisputeClosed', { ...dispute, outcome: 'lost' });
  const open = await openIn(log, end);
  assert.equal([counts(open), open.size], [{ purchase: 1, notification: 1, dispute: 1 }, 3]);
});

test('says that it did not get to the end of the log, where time ran out', async ({ log }) => {
  await log.buy([{}]);
  const over = await openIn(log, undefined, AbortSignal.abort());
  assert.equal([over.whole, over.size], [false, 0]);
  const ending = new AbortController();
  const slow: TestLog = {
    ...log,
    events: {
      ...log.events,
      async *readAll(after, filter, options) {
        for await (const batch of log.events.readAll(after, filter, options)) {
          yield { ...batch, caughtUp: false };
          ending.abort();
        }
      },
    },
  };
  const part = await openIn(slow, undefined, ending.signal);
  assert.equal([part.whole, part.size], [false, 1]);
});

test.run();
