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

const issued = (receiver: Receiver): NotificationTrigger => ({
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
  },
});
const asked = { attempt: 1, asked_by: 'e0' };
const started: NotificationTrigger = {
  type: 'NotificationStarted',
  data: { transaction_id: 't1', channel: 'sms', ...asked },
};
const ends: NotificationTrigger[] = [
  { type: 'NotificationSent', data: { channel: 'sms', provider: 'p', message_id: 'm', ...asked } },
  { type: 'NotificationFailed', data: { cause: 'no address', ...asked } },
  {
    type: 'WorkParked',
    data: { entity: 'g1', transaction_id: 't1', step: 'notify', cause: 'y', event_id: 'e', times: 1 },
  },
];

function given(...events: readonly NotificationTrigger[]): {
  work: NotificationWork | undefined;
  asked: readonly string[];
} {
  let work: NotificationWork | undefined;
  let asked: readonly string[] = [];
  for (const [revision, event] of events.entries()) {
    const reaction = reactToNotification(work, event, 'g1', {
      id: `e${revision}`,
      at: '',
      revision,
      correlationId: 'r',
    });
    work = reaction.state;
    asked = reaction.intents.map((intent) => `${intent.do} ${intent.instance}`);
  }
  return { work, asked };
}
const resumed = (work: NotificationWork | undefined): readonly string[] =>
  work === undefined ? [] : resumeNotification(work, 'g1').map((intent) => intent.do);

test('notifies a number or a user of an issued gift', () => {
  for (const receiver of [{ phone_id: 'h' }, { user_id: 'bea' }]) {
    const { work, asked } = given(issued(receiver));
    assert.equal(asked, ['notify g1']);
    assert.equal(resumed(work), ['notify']);
    assert.is(work?.index, 3);
  }
});

test('asks for no notification of a gift to be shared by URL', () =>
  assert.equal(given(issued({})), { work: undefined, asked: [] }));

test('finds out first where it takes a started notification over', () => {
  const { work, asked } = given(issued({ user_id: 'bea' }), started);
  assert.equal(asked, []);
  assert.equal(resumed(work), ['find out']);
});

test('sent, failed or parked: done', () => {
  for (const end of ends) {
    assert.is(given(issued({ user_id: 'bea' }), started, end).work, undefined);
    assert.is(given(issued({ user_id: 'bea' }), end).work, undefined);
  }
});

test('ignores events of what is not open', () => {
  for (const event of [started, ...ends]) assert.equal(given(event), { work: undefined, asked: [] });
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
