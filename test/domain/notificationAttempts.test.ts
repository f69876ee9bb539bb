import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftEvent } from '../../src/domain/gift/events.js';
import {
  type NotificationEvent,
  type NotificationAttempts,
  notificationAttempts,
  type Placed,
} from '../../src/domain/notification.js';

const test = suite('domain/notification attempts');

/** A request; absent `gift_revision`: decided on all that stands before it. */
type Requested = { readonly type: 'NotificationRequested'; readonly data: object };

/** One log of both streams, in order. An event's id is its place: `1`, `2` … */
function after(...events: readonly (GiftEvent | NotificationEvent | Requested)[]): NotificationAttempts {
  const placed = events.map((event, index) => ({
    ...event,
    data: event.type === 'NotificationRequested' ? { gift_revision: index, ...event.data } : event.data,
    id: `${index + 1}`,
    at: `at ${index + 1}`,
    position: String(index + 1).padStart(4, '0'),
    revision: index,
  }));
  const ofGift = placed.filter(({ type }) => type.startsWith('Gift') || type === 'ReminderDue') as Placed<GiftEvent>[];
  return notificationAttempts(
    ofGift,
    placed.filter(
      ({ type }) => type.startsWith('Notification') || type === 'ReminderSent',
    ) as Placed<NotificationEvent>[],
  );
}
const issued = (receiver: object = { user_id: 'bob' }): GiftEvent =>
  ({ type: 'GiftIssued', data: { transaction_id: 't', index: 0, receiver } }) as GiftEvent;
const reassigned = (user_id: string): GiftEvent => ({
  type: 'GiftReassigned',
  data: { transaction_id: 't', receiver: { user_id }, reason: 'r' },
});
/** The attempt that the first event, the issue, asks for. */
const FIRST = { attempt: 1, asked_by: '1' };
const started = (of = FIRST): NotificationEvent => ({
  type: 'NotificationStarted',
  data: { transaction_id: 't', channel: 'push', ...of },
});
const sent = (of = FIRST): NotificationEvent => ({
  type: 'NotificationSent',
  data: { channel: 'push', provider: 'p', message_id: 'm', ...of },
});
const failed = (of = FIRST): NotificationEvent => ({
  type: 'NotificationFailed',
  data: { cause: 'c', ...of },
});
const requested = (attempt: number, gift_revision?: number): Requested => ({
  type: 'NotificationRequested',
  data: { transaction_id: 't', attempt, reason: 'r', ...(gift_revision === undefined ? {} : { gift_revision }) },
});

test('notifies once for the issue', () => {
  const { next, nextNumber } = after(issued());
  assert.equal(next, {
    do: 'start',
    occasion: { id: '1', position: '0001', receiver: { user_id: 'bob' }, outdated: false },
    number: 1,
  });
  assert.is(nextNumber, 1);
  assert.is(after(issued(), started()).next.do, 'find out');
  assert.is(after(issued(), started(), sent()).next.do, 'nothing');
  assert.is(after(issued(), failed()).next.do, 'nothing');
  assert.equal(after(issued(), started(), failed()), { next: { do: 'nothing' }, nextNumber: 2 });
});

test('a notification that was not sent for a block is due again once that has ended', () => {
  const forBlock = (of = FIRST): NotificationEvent => ({
    type: 'NotificationFailed',
    data: { cause: 'gift is blocked', ...of },
  });
  const blocked = { type: 'GiftBlocked', data: { cause: 'support', reason: 'x' } } as GiftEvent;
  const unblocked = { type: 'GiftUnblocked', data: { cause: 'support', reason: 'x' } } as GiftEvent;
  assert.is(after(issued(), blocked).next.do, 'start', 'to say so');
  assert.equal(after(issued(), blocked, forBlock()), { next: { do: 'nothing' }, nextNumber: 2 });
  const freed = after(issued(), blocked, forBlock(), unblocked).next;
  assert.equal(freed.do === 'start' && [freed.number, freed.occasion.receiver], [2, { user_id: 'bob' }]);
  const second = { attempt: 2, asked_by: '1' };
  assert.is(after(issued(), blocked, forBlock(), unblocked, started(second), sent(second)).next.do, 'nothing');
  const history = [issued(), started(), sent(), requested(2), blocked, forBlock({ attempt: 2, asked_by: '4' })];
  assert.is(after(...history).next.do, 'nothing');
  assert.is(after(...history, unblocked).next.do, 'start');
  assert.is(after(issued(), blocked, forBlock(), reassigned('cat'), unblocked).next.do, 'start', 'the new receiver');
});

test('sends no notification of a gift to be shared by URL', () => {
  assert.is(after(issued({})).next.do, 'nothing');
  assert.is(after(issued({}), requested(1)).next.do, 'nothing');
  assert.is(after().next.do, 'nothing');
});

test('makes one more attempt for each request, in order', () => {
  const first = [issued(), started(), sent()];
  const again = after(...first, requested(2));
  assert.equal(again.next, {
    do: 'start',
    occasion: { id: '4', position: '0004', receiver: { user_id: 'bob' }, outdated: false },
    number: 2,
  });
  assert.is(after(...first, requested(2), started({ attempt: 2, asked_by: '4' })).next.do, 'find out');
  const done = [...first, requested(2), started({ attempt: 2, asked_by: '4' }), sent({ attempt: 2, asked_by: '4' })];
  assert.equal([after(...done).next.do, after(...done).nextNumber], ['nothing', 3]);
  const third = after(...done, requested(3)).next;
  assert.equal(third.do === 'start' && [third.number, third.occasion.id], [3, '7']);
});

test('notifies only the new receiver after a reassignment', () => {
  const moved = after(issued(), started(), sent(), reassigned('cat')).next;
  assert.equal(moved, {
    do: 'start',
    occasion: { id: '4', position: '0004', receiver: { user_id: 'cat' }, outdated: false },
    number: 2,
  });
  const twice = after(issued(), started(), sent(), reassigned('cat'), reassigned('dan')).next;
  assert.equal(twice.do === 'start' && [twice.number, twice.occasion.receiver], [2, { user_id: 'dan' }]);
  const overtaken = after(issued(), started(), sent(), requested(2), reassigned('cat')).next;
  assert.equal(overtaken.do === 'start' && overtaken.occasion.receiver, { user_id: 'cat' });
  const fromNobody = after(
    issued({}),
    reassigned('cat'),
    started({ attempt: 1, asked_by: '2' }),
    sent({ attempt: 1, asked_by: '2' }),
  );
  assert.is(fromNobody.next.do, 'nothing');
});

test('skips a request that was decided on before a reassignment and appended after it', () => {
  const moved = [issued(), started(), sent(), reassigned('cat'), requested(2, 0)];
  const { next } = after(...moved);
  assert.equal(next.do === 'start' && [next.number, next.occasion.id, next.occasion.receiver], [
    2,
    '4',
    { user_id: 'cat' },
  ]);
  const done = [...moved, started({ attempt: 2, asked_by: '4' }), sent({ attempt: 2, asked_by: '4' })];
  assert.is(after(...done).next.do, 'nothing');
  const known = after(...done, requested(3, 3)).next;
  assert.equal(known.do === 'start' && [known.number, known.occasion.id, known.occasion.receiver], [
    3,
    '8',
    { user_id: 'cat' },
  ]);
  assert.is(after(...done, requested(3)).next.do, 'start', 'decided on the reassignment');
  const later = after(...done, requested(3, 3), reassigned('dan')).next;
  assert.equal(later.do === 'start' && later.occasion.receiver, { user_id: 'dan' });
});

test('the receiver of a scheduled gift is notified by its release, not before, and its last receiver alone', () => {
  const scheduled = {
    type: 'GiftIssued',
    data: { transaction_id: 't', index: 0, receiver: { user_id: 'bob' }, scheduled: true },
  } as GiftEvent;
  const released: GiftEvent = { type: 'GiftReleased', data: { transaction_id: 't' } };
  assert.is(after(scheduled).next.do, 'nothing');
  assert.is(after(scheduled, reassigned('cat')).next.do, 'nothing');
  const { next } = after(scheduled, released);
  assert.equal(next.do === 'start' && [next.number, next.occasion.id, next.occasion.receiver], [
    1,
    '2',
    { user_id: 'bob' },
  ]);
  const moved = after(scheduled, reassigned('cat'), released);
  assert.equal(moved.next.do === 'start' && moved.next.occasion.receiver, { user_id: 'cat' });
  const own = { attempt: 1, asked_by: '2' };
  assert.is(after(scheduled, released, started(own), sent(own)).next.do, 'nothing');
  assert.is(after(scheduled, released, started(own), sent(own), reassigned('cat')).next.do, 'start');
});

test('nobody is notified of a gift that is blocked at its release or reassignment, until all blocks end', () => {
  const scheduled = {
    type: 'GiftIssued',
    data: { transaction_id: 't', index: 0, receiver: { user_id: 'bob' }, scheduled: true },
  } as GiftEvent;
  const released: GiftEvent = { type: 'GiftReleased', data: { transaction_id: 't' } };
  const block = (cause: string): GiftEvent => ({ type: 'GiftBlocked', data: { cause, reason: '' } });
  const unblock = (cause: string): GiftEvent => ({
    type: 'GiftUnblocked',
    data: { cause, reason: '', transaction_id: 't' },
  });
  const held = [scheduled, block('dispute:d'), block('support'), released];
  assert.is(after(...held).next.do, 'nothing');
  assert.is(after(...held, unblock('support')).next.do, 'nothing');
  const freed = after(...held, unblock('support'), unblock('dispute:d')).next;
  assert.equal(freed.do === 'start' && [freed.number, freed.occasion.receiver], [1, { user_id: 'bob' }]);
  const notified = [issued(), started(), sent()];
  assert.is(after(...notified, block('support'), reassigned('cat')).next.do, 'nothing');
  assert.is(after(...notified, block('support'), reassigned('cat'), unblock('support')).next.do, 'start');
});

test('a reminder goes to who holds the gift, once, and to nobody after what makes it needless', () => {
  const due: GiftEvent = {
    type: 'ReminderDue',
    data: { transaction_id: 't', days: 7, expires_on: '2027-01-08', until: '2027-01-01T19:00:00.000Z' },
  };
  const notified = [issued(), started(), sent()];
  const { next } = after(...notified, due);
  assert.equal(next.do === 'start' && [next.number, next.occasion.receiver, next.occasion.reminder], [
    2,
    { user_id: 'bob' },
    { expires_on: '2027-01-08', until: '2027-01-01T19:00:00.000Z' },
  ]);
  const own = { attempt: 2, asked_by: '4' };
  const reminded: NotificationEvent = {
    type: 'ReminderSent',
    data: { channel: 'push', provider: 'p', message_id: 'm', ...own },
  };
  assert.is(after(...notified, due, started(own)).next.do, 'find out');
  assert.is(after(...notified, due, started(own), reminded).next.do, 'nothing');
  const claimed = after(issued({}), { type: 'GiftClaimed', data: { user_id: 'eve' } }, due).next;
  assert.equal(claimed.do === 'start' && [claimed.number, claimed.occasion.receiver], [1, { user_id: 'eve' }]);
  for (const type of ['GiftRedeemed', 'GiftCancelled', 'GiftBlocked', 'GiftExtended'] as const)
    assert.is(after(...notified, due, { type, data: {} } as GiftEvent).next.do, 'nothing', type);
  const moved = after(...notified, due, reassigned('cat')).next;
  assert.equal(moved.do === 'start' && [moved.occasion.receiver, moved.occasion.reminder], [
    { user_id: 'cat' },
    undefined,
  ]);
});

test('a reminder goes to who has the gift by then; a change before it does not make it needless', () => {
  const due: GiftEvent = {
    type: 'ReminderDue',
    data: { transaction_id: 't', days: 7, expires_on: '2027-01-08', until: '2027-01-01T19:00:00.000Z' },
  };
  const extended = { type: 'GiftExtended', data: {} } as GiftEvent;
  const { next } = after(issued(), started(), sent(), extended, due);
  assert.equal(next.do === 'start' && next.occasion.id, '5');
  const own = { attempt: 2, asked_by: '4' };
  const moved = after(issued(), started(), sent(), reassigned('cat'), started(own), sent(own), due).next;
  assert.equal(moved.do === 'start' && moved.occasion.receiver, { user_id: 'cat' });
  assert.is(after(issued({}), due).next.do, 'nothing', 'nobody has it');
});

test('of a reminder and a request that are both due the earlier one goes first', () => {
  const due: GiftEvent = {
    type: 'ReminderDue',
    data: { transaction_id: 't', days: 7, expires_on: '2027-01-08', until: '2027-01-01T19:00:00.000Z' },
  };
  const first = (...events: readonly (GiftEvent | Requested)[]): string | false => {
    const { next } = after(issued(), started(), sent(), ...events);
    return next.do === 'start' && next.occasion.id;
  };
  assert.equal([first(due, requested(2)), first(requested(2), due)], ['4', '4']);
});

test('passes over an attempt for what the gift, as it was read, does not hold', () => {
  assert.equal(after(issued(), failed({ attempt: 1, asked_by: 'later' })).next, after(issued()).next);
});

test('notifies the new receiver by phone for a request after a reassignment', () => {
  const number: GiftEvent = {
    type: 'GiftReassigned',
    data: { transaction_id: 't', receiver: { phone_id: 'h' }, reason: 'r' },
  };
  const { next } = after(
    issued(),
    started(),
    sent(),
    number,
    started({ attempt: 2, asked_by: '4' }),
    sent({ attempt: 2, asked_by: '4' }),
    requested(3),
  );
  assert.equal(next.do === 'start' && next.occasion.receiver, { phone_id: 'h' });
});

test('looks up an attempt that was started before a reassignment, as outdated', () => {
  const { next } = after(issued(), started(), reassigned('cat'));
  assert.equal(next.do === 'find out' && [next.attempt.number, next.attempt.occasion.outdated], [1, true]);
  const then = after(issued(), started(), reassigned('cat'), failed({ attempt: 1, asked_by: '1' })).next;
  assert.equal(then.do === 'start' && [then.number, then.occasion.id], [2, '3']);
});

test.run();
