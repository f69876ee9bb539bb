import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftEvent } from '../../src/domain/gift.js';
import type { NotificationEvent } from '../../src/domain/notification.js';
import { type Placed, type NotificationAttempts, notificationAttempts } from '../../src/domain/notificationAttempts.js';

const test = suite('domain/notificationAttempts');

/** One log of both streams, in order. An event's id is its place: `1`, `2` … */
function told(...events: readonly (GiftEvent | NotificationEvent)[]): NotificationAttempts {
  const placed = events.map((event, index) => ({
    ...event,
    id: `${index + 1}`,
    at: `at ${index + 1}`,
    position: String(index + 1).padStart(4, '0'),
    revision: index,
  }));
  const ofGift = placed.filter(({ type }) => type.startsWith('Gift')) as Placed<GiftEvent>[];
  return notificationAttempts(
    ofGift,
    placed.filter(({ type }) => type.startsWith('Notification')) as Placed<NotificationEvent>[],
  );
}
const issued = (receiver: object = { user_id: 'bob' }): GiftEvent =>
  ({ type: 'GiftIssued', data: { transaction_id: 't', index: 0, receiver } }) as unknown as GiftEvent;
const reassigned = (user_id: string): GiftEvent => ({
  type: 'GiftReassigned',
  data: { transaction_id: 't', receiver: { user_id }, phone_number: null, reason: 'r' },
});
const started = (of: { attempt?: number; asked_by?: string } = {}): NotificationEvent => ({
  type: 'NotificationStarted',
  data: { transaction_id: 't', channel: 'push', ...of },
});
const sent = (of: { attempt?: number; asked_by?: string } = {}): NotificationEvent => ({
  type: 'NotificationSent',
  data: { channel: 'push', provider: 'p', message_id: 'm', ...of },
});
const failed = (of: { attempt?: number; asked_by?: string } = {}): NotificationEvent => ({
  type: 'NotificationFailed',
  data: { cause: 'c', ...of },
});
const requested = (attempt: number, gift_revision?: number): NotificationEvent => ({
  type: 'NotificationRequested',
  data: { transaction_id: 't', attempt, reason: 'r', ...(gift_revision === undefined ? {} : { gift_revision }) },
});

test('the issue asks once', () => {
  const { next, nextNumber } = told(issued());
  assert.equal(next, {
    do: 'start',
    ask: { id: '1', position: '0001', receiver: 'bought', outdated: false },
    number: 1,
  });
  assert.is(nextNumber, 1);
  assert.is(told(issued(), started()).next.do, 'find out');
  assert.is(told(issued(), started(), sent()).next.do, 'nothing');
  assert.is(told(issued(), failed()).next.do, 'nothing');
  assert.equal(told(issued(), started(), failed()), { next: { do: 'nothing' }, nextNumber: 2 });
});

test('a gift to be shared by URL has nobody to tell', () => {
  assert.is(told(issued({})).next.do, 'nothing');
  assert.is(told().next.do, 'nothing');
});

test('each request is one more attempt, in order', () => {
  const first = [issued(), started(), sent()];
  const again = told(...first, requested(2));
  assert.equal(again.next, {
    do: 'start',
    ask: { id: '4', position: '0004', receiver: 'bought', outdated: false },
    number: 2,
  });
  assert.is(told(...first, requested(2), started({ attempt: 2, asked_by: '4' })).next.do, 'find out');
  const done = [...first, requested(2), started({ attempt: 2, asked_by: '4' }), sent({ attempt: 2, asked_by: '4' })];
  assert.equal([told(...done).next.do, told(...done).nextNumber], ['nothing', 3]);
  const third = told(...done, requested(3)).next;
  assert.equal(third.do === 'start' && [third.number, third.ask.id], [3, '7']);
});

test('after a reassignment the new receiver is told, and nobody else', () => {
  const moved = told(issued(), started(), sent(), reassigned('cat')).next;
  assert.equal(moved, {
    do: 'start',
    ask: { id: '4', position: '0004', receiver: { user_id: 'cat' }, outdated: false },
    number: 2,
  });
  const twice = told(issued(), started(), sent(), reassigned('cat'), reassigned('dan')).next;
  assert.equal(twice.do === 'start' && [twice.number, twice.ask.receiver], [2, { user_id: 'dan' }]);
  const overtaken = told(issued(), started(), sent(), requested(2), reassigned('cat')).next;
  assert.equal(overtaken.do === 'start' && overtaken.ask.receiver, { user_id: 'cat' });
  const fromNobody = told(
    issued({}),
    reassigned('cat'),
    started({ attempt: 1, asked_by: '2' }),
    sent({ attempt: 1, asked_by: '2' }),
  );
  assert.is(fromNobody.next.do, 'nothing');
});

test('a request that was decided on before a reassignment and came after it tells nobody: the reassignment does', () => {
  const moved = [issued(), started(), sent(), reassigned('cat'), requested(2, 0)];
  const { next } = told(...moved);
  assert.equal(next.do === 'start' && [next.number, next.ask.id, next.ask.receiver], [2, '4', { user_id: 'cat' }]);
  const done = [...moved, started({ attempt: 2, asked_by: '4' }), sent({ attempt: 2, asked_by: '4' })];
  assert.is(told(...done).next.do, 'nothing');
  const known = told(...done, requested(3, 3)).next;
  assert.equal(known.do === 'start' && [known.number, known.ask.id, known.ask.receiver], [3, '8', { user_id: 'cat' }]);
  assert.is(told(...done, requested(3)).next.do, 'start', 'where that is not known, by its place in the log');
  const later = told(...done, requested(3, 3), reassigned('dan')).next;
  assert.equal(later.do === 'start' && later.ask.receiver, { user_id: 'dan' });
});

test('a request after a reassignment tells the new receiver again; a phone number goes with it', () => {
  const number: GiftEvent = {
    type: 'GiftReassigned',
    data: { transaction_id: 't', receiver: { phone_hash: 'h' }, phone_number: '+447700900001', reason: 'r' },
  };
  const { next } = told(
    issued(),
    started(),
    sent(),
    number,
    started({ attempt: 2, asked_by: '4' }),
    sent({ attempt: 2, asked_by: '4' }),
    requested(3),
  );
  assert.equal(next.do === 'start' && next.ask.receiver, { phone_hash: 'h', phone_number: '+447700900001' });
});

test('an attempt that began before the gift went to another is found out, and is known to be outdated', () => {
  const { next } = told(issued(), started(), reassigned('cat'));
  assert.equal(next.do === 'find out' && [next.attempt.number, next.attempt.ask.outdated], [1, true]);
  const then = told(issued(), started(), reassigned('cat'), failed({ attempt: 1, asked_by: '1' })).next;
  assert.equal(then.do === 'start' && [then.number, then.ask.id], [2, '3']);
});

test.run();
