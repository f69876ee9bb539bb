import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Receiver } from '../../../src/domain/gift/events.js';
import { addressOf } from '../../../src/processors/notification/address.js';
import {
  type NotificationTrigger,
  type NotificationWork,
  reactToNotification,
  resumeNotification,
} from '../../../src/processors/notification/state.js';

const test = suite('notification process');

const issued = (receiver: Receiver, scheduled?: true): NotificationTrigger => ({
  type: 'GiftIssued',
  data: {
    transaction_id: 't1',
    index: 3,
    message_id: 'm',
    product_id: 'coffee',
    brand_id: 'beans',
    value: 250,
    sender_id: 'ann',
    receiver,
    purchased_at: '',
    expires_on: '2030-01-01',
    ...(scheduled === undefined ? {} : { scheduled }),
  },
});
const SENT = { channel: 'sms', provider: 'p', message_id: 'm' } as const;
const answers = (attempt: number, asked_by: string): NotificationTrigger[] => [
  { type: 'NotificationSent', data: { ...SENT, attempt, asked_by } },
  { type: 'ReminderSent', data: { ...SENT, attempt, asked_by } },
  { type: 'NotificationFailed', data: { cause: 'no address', attempt, asked_by } },
];
const parked: NotificationTrigger = {
  type: 'WorkParked',
  data: { entity: 'g1', transaction_id: 't1', step: 'notify', cause: 'y', event_id: 'e', times: 1 },
};
const requests: NotificationTrigger[] = [
  { type: 'GiftReleased', data: { transaction_id: 't1' } },
  { type: 'GiftReassigned', data: { transaction_id: 't1', receiver: { user_id: 'cat' }, reason: 'r' } },
  { type: 'GiftUnblocked', data: { transaction_id: 't1', cause: 'support', reason: 'r' } },
  { type: 'ReminderDue', data: { transaction_id: 't1', days: 7, expires_on: '2030-01-01', until: '' } },
  { type: 'NotificationRequested', data: { transaction_id: 't1', attempt: 2, gift_revision: 0, reason: 'r' } },
  { type: 'WorkRetried', data: { entity: 'g1', transaction_id: 't1', step: 'notify', times: 1, reason: 'r' } },
];

/** Given these events, with ids `e0`, `e1` …: what is open, and what the last of them asks for. */
function given(...events: readonly NotificationTrigger[]): {
  work: NotificationWork | undefined;
  requested: readonly string[];
} {
  let work: NotificationWork | undefined;
  let requested: readonly string[] = [];
  for (const [revision, event] of events.entries()) {
    const reaction = reactToNotification(work, event, 'g1', {
      id: `e${revision}`,
      at: '',
      revision,
      correlationId: 'r',
    });
    work = reaction.state;
    requested = reaction.intents.map((intent) => `${intent.do} ${intent.instance} for ${intent.requestedBy}`);
  }
  return { work, requested };
}
const resumed = (work: NotificationWork | undefined): readonly string[] =>
  work === undefined ? [] : resumeNotification(work, 'g1').map((intent) => `${intent.do} for ${intent.requestedBy}`);

test('notifies a number or a user of an issued gift', () => {
  for (const receiver of [{ phone_id: 'h' }, { user_id: 'bea' }]) {
    const { work, requested } = given(issued(receiver));
    assert.equal(requested, ['notify g1 for e0']);
    assert.equal(resumed(work), ['notify for e0']);
    assert.is(work?.transactionId, 't1');
  }
});

test('asks for no notification of a gift to be shared by URL, or sent later', () => {
  assert.equal(given(issued({})), { work: undefined, requested: [] });
  assert.equal(given(issued({ user_id: 'bea' }, true)), { work: undefined, requested: [] });
});

test('notifies for each event that requests it, and resumes the last one', () => {
  for (const request of requests) {
    const { work, requested } = given(request);
    assert.equal([requested, resumed(work)], [['resend g1 for e0'], ['resend for e0']], request.type);
    assert.equal(resumed(given(issued({ user_id: 'bea' }), request).work), ['resend for e1'], request.type);
  }
});

test('closes by the answer to the last request', () => {
  for (const answer of answers(1, 'e0')) {
    assert.equal(given(issued({ user_id: 'bea' }), answer), { work: undefined, requested: [] }, answer.type);
    for (const request of requests) {
      assert.is(given(request, answer).work, undefined, answer.type);
      assert.equal(resumed(given(issued({ user_id: 'bea' }), request, answer).work), ['resend for e1'], answer.type);
    }
  }
  const [sent = parked] = answers(2, 'e1');
  for (const request of requests) assert.is(given(issued({ user_id: 'bea' }), request, sent).work, undefined);
});

test('closes by its parking, whatever was requested', () => {
  assert.is(given(issued({ user_id: 'bea' }), parked).work, undefined);
  for (const request of requests) assert.is(given(issued({ user_id: 'bea' }), request, parked).work, undefined);
});

test('ignores events of what is not open', () => {
  for (const event of [parked, ...answers(1, 'e0')]) assert.equal(given(event), { work: undefined, requested: [] });
});

test("chooses the channel by the receiver's addresses", () => {
  const contact = { name: 'Bea', phone_number: '+447700900001', device_tokens: ['a', 'b'], locale: 'cy' };
  assert.equal(addressOf({ phone_id: 'p' }, undefined, '+447700900009'), {
    channel: 'sms',
    to: ['+447700900009'],
    locale: null,
  });
  assert.equal(addressOf({ user_id: 'bea' }, contact, undefined), { channel: 'push', to: ['a', 'b'], locale: 'cy' });
  assert.equal(addressOf({ user_id: 'bea' }, { ...contact, device_tokens: [] }, undefined), {
    channel: 'sms',
    to: ['+447700900001'],
    locale: 'cy',
  });
  assert.is(addressOf({ user_id: 'bea' }, { ...contact, device_tokens: [], phone_number: null }, undefined), undefined);
  assert.is(addressOf({ user_id: 'bea' }, undefined, undefined), undefined);
  assert.is(addressOf({}, undefined, undefined), undefined);
  assert.is(addressOf({ phone_id: 'p' }, undefined, undefined), undefined, 'the number was erased');
});

test.run();
