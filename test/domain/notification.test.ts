import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { failDelivery, failAttempt, type NotificationEvent } from '../../src/domain/notification.js';

const test = suite('domain/notification');

const first = { attempt: 1, asked_by: 'i' };
const again = { attempt: 2, asked_by: 'e' };
const started = (of: object = {}): NotificationEvent => ({
  type: 'NotificationStarted',
  data: { transaction_id: 't', channel: 'sms', ...first, ...of },
});
const sent = (message_id: string, of: object = {}): NotificationEvent => ({
  type: 'NotificationSent',
  data: { channel: 'sms', provider: 'twilio', message_id, ...first, ...of },
});
const requested: NotificationEvent = {
  type: 'NotificationRequested',
  data: { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'r' },
};
const undelivered = (message_id: string): NotificationEvent => ({
  type: 'NotificationUndelivered',
  data: { provider: 'twilio', message_id, cause: 'c' },
});
const failed = (of: object = {}): NotificationEvent => ({
  type: 'NotificationFailed',
  data: { cause: 'c', ...first, ...of },
});
const delivery = (history: NotificationEvent[], message_id: string): unknown =>
  failDelivery(history, { provider: 'twilio', message_id, cause: 'c' });

test('records once, after it was sent, that a message was not delivered', () => {
  assert.equal(delivery([started()], 'm1'), undefined);
  assert.equal(delivery([started(), sent('m1')], 'm2'), undefined);
  assert.deepEqual(delivery([started(), sent('m1')], 'm1'), [undelivered('m1')]);
  assert.deepEqual(delivery([started(), sent('m1'), undelivered('m1')], 'm1'), []);
  assert.deepEqual(
    delivery([started(), sent('m1'), undelivered('m1'), requested, started(again), sent('m2', again)], 'm2'),
    [undelivered('m2')],
  );
  const reminded: NotificationEvent = { ...sent('m3', again), type: 'ReminderSent' } as NotificationEvent;
  assert.deepEqual(delivery([started(), sent('m1'), started(again), reminded], 'm3'), [undelivered('m3')]);
});

test('fails the open attempt whose message was not delivered, and no other', () => {
  assert.deepEqual(failAttempt([started()], 1, 'c'), [failed()]);
  assert.deepEqual(failAttempt([started(), sent('m1'), requested, started(again)], 2, 'c'), [failed(again)]);
  for (const history of [
    [],
    [requested],
    [started(), sent('m1')],
    [failed()],
    [started(), sent('m1'), requested, started(again)],
  ])
    assert.deepEqual(failAttempt(history, 1, 'c'), []);
  assert.deepEqual(failAttempt([started()], 2, 'c'), []);
});

test.run();
