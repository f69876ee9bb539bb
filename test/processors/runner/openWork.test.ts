import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import { disputeManager } from '../../../src/processors/dispute/manager.js';
import { type ManagerDeps, MANAGERS } from '../../../src/processors/managers.js';
import { notificationManager } from '../../../src/processors/notification/manager.js';
import { purchaseManager } from '../../../src/processors/purchase/manager.js';
import { refundManager } from '../../../src/processors/refund/manager.js';
import type { Requested } from '../../../src/processors/runner/foldEvent.js';
import { openWork as openAll } from '../../../src/processors/runner/openWork.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite('open work');

/** The open work of all process managers, asked in short. */
function openWork(from: string | undefined) {
  const open = openAll<ManagerDeps>(MANAGERS, from);
  const intents = (requested: Iterable<Requested<ManagerDeps>>): object[] => [...requested].map(({ intent }) => intent);
  return {
    apply: (event: RecordedEvent) => intents(open.apply(event)),
    resume: () => intents(open.resume()),
    foldedTo: open.foldedTo,
    timesParked: open.timesParked,
    checkpoint: open.checkpoint,
    size: () => open.size,
    position: () => open.position,
    oldestAt: () => open.oldestAt,
    purchase: (id: string) => open.state(purchaseManager, id),
    reopening: (id: string) => open.reopening(purchaseManager, id),
    startReading: (id: string) => open.startReading(purchaseManager, id),
    reopen: (id: string, history: readonly RecordedEvent[]) => intents(open.reopen(purchaseManager, id, history)),
    notification: (id: string) => open.state(notificationManager, id),
    notificationDone: (instance: string, requestedBy = '') =>
      intents(open.done({ manager: notificationManager, intent: { do: 'resend', instance, requestedBy } as never })),
    refund: (id: string) => open.state(refundManager, id),
    refundDone: (instance: string) =>
      intents(open.done({ manager: refundManager, intent: { do: 'refund', instance } })),
    isUndecided: (giftId: string) => open.byKey(refundManager, giftId) !== undefined,
    reversalDone: (instance: string, key: string) =>
      void open.done({ manager: disputeManager, intent: { do: 'settle', instance, key } as never }),
  };
}

let last = 0;
function happened(stream: string, type: string, data: object): RecordedEvent {
  return { ...eventOf(type, data), stream, revision: 0, position: String(++last).padStart(4, '0') };
}
const bought = (id: string, ...receivers: object[]): RecordedEvent =>
  happened(`transaction-${id}`, 'GiftsPurchased', { transaction_id: id, receivers });
const charged = (id: string): RecordedEvent => happened(`transaction-${id}`, 'PaymentCharged', {});
/** Ids of the gifts' issues. */
const issues = new Map<string, string>();
const issued = (id: string, gift: string, receiver: object): RecordedEvent => {
  const issue = happened(`gift-${gift}`, 'GiftIssued', { transaction_id: id, index: 0, receiver });
  issues.set(gift, issue.id);
  return issue;
};
const notify = (gift: string): object => ({ do: 'notify', instance: gift, requestedBy: issues.get(gift) });
const resend = (gift: string, { id: requestedBy }: RecordedEvent): object => ({
  do: 'resend',
  instance: gift,
  requestedBy,
});
const told = (gift: string, type = 'NotificationSent'): RecordedEvent =>
  happened(`notification-${gift}`, type, { attempt: 1, asked_by: issues.get(gift) });
const parked = (entity: string, transaction_id: string): RecordedEvent =>
  happened(entity === transaction_id ? 'parked-purchase' : 'parked-notification', 'WorkParked', {
    entity,
    transaction_id,
  });
const phone = { phone_id: 'h' };

test('the checkpoint is the highest position with nothing unfinished at or below it', () => {
  last = 10;
  const open = openWork('0010');
  assert.is(open.checkpoint(), '0010');
  open.apply(bought('a', {}));
  assert.is(open.checkpoint(), '0010');
  open.apply(bought('b', {}));
  open.apply(charged('a'));
  open.apply(issued('a', 'ga', {}));
  assert.is(open.size(), 1);
  assert.is(open.checkpoint(), '0011', 'a is done, b is open');
  open.apply(happened('transaction-a', 'RefundRequested', { refund_id: 'r', gift_ids: [] }));
  assert.is(open.checkpoint(), '0011', 'b has been open for longer than the refund');
  open.apply(happened('transaction-a', 'NothingRefunded', { refund_id: 'r', collected: {} }));
  open.apply(happened('transaction-b', 'PaymentDeclined', {}));
  assert.is(open.checkpoint(), '0017');
  open.foldedTo('0042');
  assert.is(open.checkpoint(), '0042');
});

test('resumes all open work', () => {
  const open = openWork(undefined);
  assert.is(open.checkpoint(), undefined);
  open.apply(bought('new', {}));
  open.apply(bought('asked', {}));
  open.apply(happened('transaction-asked', 'ChargeStarted', {}));
  open.apply(bought('paid', phone, phone, phone));
  assert.equal(open.apply(charged('paid')), [{ do: 'issue', instance: 'paid' }]);
  assert.equal(open.apply(issued('paid', 'g1', phone)), [notify('g1')]);
  open.apply(issued('paid', 'g2', phone));
  open.apply(told('g2', 'NotificationStarted'));
  assert.equal(
    [...open.resume()],
    [
      { do: 'charge', instance: 'new' },
      { do: 'charge', instance: 'asked' },
      { do: 'issue', instance: 'paid' },
      notify('g1'),
      notify('g2'),
    ],
  );
  assert.is(open.purchase('paid')?.toIssue, 1);
});

test('closes only the work that was parked: a purchase without its notifications, a notification by itself', () => {
  const open = openWork(undefined);
  open.apply(bought('a', phone, phone));
  open.apply(charged('a'));
  open.apply(issued('a', 'g1', phone));
  open.apply(issued('a', 'g2', phone));
  open.apply(bought('b', phone));
  open.apply(charged('b'));
  open.apply(issued('b', 'g3', phone));
  open.apply(bought('c', phone, phone));
  open.apply(charged('c'));
  open.apply(issued('c', 'g4', phone));
  open.apply(parked('g1', 'a'));
  open.apply(parked('c', 'c'));
  assert.is(open.purchase('c'), undefined);
  assert.is(open.notification('g1'), undefined);
  assert.equal([...open.resume()], [notify('g2'), notify('g3'), notify('g4')]);
});

test('leaves alone what was done before the feed started', () => {
  const open = openWork('0000');
  issued('a', 'g1', phone);
  for (const event of [told('g1', 'NotificationStarted'), told('g1'), parked('g1', 'a'), parked('a', 'a')])
    assert.equal(open.apply(event), []);
  assert.equal([...open.resume()], []);
});

test('notifies of a gift that a command issues while its purchase is parked', () => {
  last = 10;
  const open = openWork('0010');
  open.apply(bought('a', phone, phone));
  open.apply(charged('a'));
  open.apply(parked('a', 'a'));
  assert.equal(open.apply(issued('a', 'g1', phone)), [notify('g1')]);
  assert.equal([open.size(), open.checkpoint()], [1, '0013']);
  open.apply(told('g1'));
  assert.equal([open.size(), open.checkpoint()], [0, '0015']);
});

test('holds the checkpoint back from the issue of a gift until its receiver is notified', () => {
  last = 10;
  const open = openWork('0010');
  open.apply(bought('a', phone));
  open.apply(charged('a'));
  open.apply(issued('a', 'g1', phone));
  open.apply(told('g1', 'NotificationStarted'));
  assert.equal([open.purchase('a'), open.size(), open.checkpoint()], [undefined, 1, '0012']);
  open.apply(told('g1', 'NotificationFailed'));
  assert.equal([open.size(), open.checkpoint()], [0, '0015']);
});

test('keeps a refund open until its answer, a refused one until it is parked', () => {
  last = 10;
  const open = openWork('0010');
  const step = (type: string, refund_id: string): object =>
    open.apply(happened('transaction-a', type, { refund_id, gift_ids: [] }));
  assert.equal(step('RefundRequested', 'r1'), [{ do: 'refund', instance: 'r1' }]);
  open.apply(bought('b', {}));
  assert.is(open.checkpoint(), '0010');
  assert.equal(step('RefundStarted', 'r1'), [], 'who wrote it goes on');
  assert.is(open.refund('r1')?.transactionId, 'a');
  assert.equal(step('GiftsRefunded', 'r1'), []);
  assert.is(open.checkpoint(), '0011');
  assert.equal(
    step('RefundStarted', 'late'),
    [{ do: 'refund', instance: 'late' }],
    'nobody asked for it: it begins here',
  );
  open.apply(happened('transaction-b', 'PaymentDeclined', {}));
  assert.equal([open.checkpoint(), open.refund('late')?.transactionId], ['0014', 'a']);
  step('RefundRefused', 'late');
  assert.equal([...open.resume()], [{ do: 'refund', instance: 'late' }]);
  open.apply(happened('parked-refund', 'WorkParked', { entity: 'late', transaction_id: 'a', step: 'refund' }));
  assert.is(open.size(), 0);
  assert.equal(
    step('RefundRefused', 'late'),
    [{ do: 'refund', instance: 'late' }],
    'it had been given up: nobody has it in hand',
  );
  assert.is(open.size(), 1);
  open.apply(happened('parked-refund', 'WorkParked', { entity: 'late', transaction_id: 'a', step: 'refund' }));
  step('RefundRequested', 'r2');
  step('NothingRefunded', 'r2');
  assert.is(open.checkpoint(), '0022');
  const fromTheBeginning = openWork(undefined);
  fromTheBeginning.apply(happened('transaction-a', 'RefundRequested', { refund_id: 'r1', gift_ids: [] }));
  fromTheBeginning.apply(bought('b', {}));
  assert.is(fromTheBeginning.checkpoint(), undefined);
});

test('opens a refund again that the provider reports as failed after its end', () => {
  const open = openWork('0000');
  const step = (type: string): object => open.apply(happened('transaction-a', type, { refund_id: 'r', gift_ids: [] }));
  step('RefundRequested');
  step('GiftsRefunded');
  assert.equal(step('RefundFailed'), [{ do: 'refund', instance: 'r' }]);
  assert.equal([open.size(), open.refund('r')?.transactionId], [1, 'a']);
});

const retried = (name: string, entity: string, step = 'charge', times = 1): RecordedEvent =>
  happened(`parked-${name}`, 'WorkRetried', { entity, transaction_id: 'a', step, times, reason: 'r' });

test('holds the checkpoint back for a retried purchase while its history is read', () => {
  last = 10;
  const open = openWork('0010');
  const history = [bought('a', ...Array.from({ length: 4 }, () => phone)), charged('a'), issued('a', 'g1', phone)];
  open.foldedTo('0020');
  last = 20;
  assert.equal(open.apply(retried('purchase', 'a', 'issue', 3)), [{ do: 'reopen', instance: 'a' }]);
  assert.equal(
    [open.purchase('a'), open.reopening('a')?.step, open.timesParked('purchase', 'a')],
    [undefined, 'issue', 3],
  );
  assert.equal(open.apply(retried('purchase', 'a')), [], 'again: it is being opened');
  const second = issued('a', 'g2', phone);
  assert.equal(open.apply(second), [notify('g2')]);
  assert.equal([...open.resume()], [{ do: 'reopen', instance: 'a' }, notify('g2')]);
  assert.is(open.startReading('a'), '0023');
  // While its history is read, more happens.
  open.apply(told('g2'));
  assert.equal(open.apply(issued('a', 'g3', phone)), [notify('g3')]);
  open.apply(told('g3'));
  assert.equal([open.size(), open.checkpoint()], [1, '0020']);
  assert.equal(open.reopen('a', [...history, second]), [{ do: 'issue', instance: 'a' }]);
  assert.equal([open.purchase('a')?.toIssue, open.notification('g2')], [1, undefined]);
  assert.is(open.checkpoint(), '0020');
  open.apply(issued('a', 'g4', {}));
  assert.equal([open.size(), open.checkpoint()], [0, '0027']);
  assert.equal(open.reopen('a', history), []);
});

test('closes a reopened purchase with nothing left to do, a declined one without reading', () => {
  const open = openWork('0000');
  const history = [bought('a', {}), charged('a'), issued('a', 'g1', {})];
  open.apply(retried('purchase', 'a'));
  open.startReading('a');
  assert.equal([open.reopen('a', history), open.size()], [[], 0]);
  open.apply(retried('purchase', 'a'));
  assert.equal([open.reopen('a', []), open.size()], [[], 0], 'nothing is known of it');
  open.apply(retried('purchase', 'a'));
  open.startReading('a');
  open.apply(happened('transaction-a', 'PaymentDeclined', {}));
  assert.is(open.size(), 0);
  open.apply(retried('purchase', 'a'));
  open.apply(parked('a', 'a'));
  assert.equal([open.size(), open.timesParked('purchase', 'a')], [0, 0]);
});

test('knows when the oldest open event was, whichever manager has it', () => {
  const open = openWork('0000');
  const at = (day: number): { at: string } => ({ at: `2026-01-0${day}T00:00:00.000Z` });
  open.apply({ ...bought('a', phone), ...at(2) });
  open.apply({ ...happened('transaction-b', 'RefundRequested', { refund_id: 'r', gift_ids: [] }), ...at(1) });
  open.apply({ ...bought('c', phone), ...at(3) });
  assert.is(open.oldestAt(), at(1).at);
  open.apply(happened('transaction-b', 'NothingRefunded', { refund_id: 'r' }));
  assert.is(open.oldestAt(), at(2).at);
});

test('counts the parkings of a dispute anew once it was parked again', () => {
  const open = openWork('0000');
  open.apply(retried('dispute', 'dp', 'dispute', 2));
  assert.is(open.timesParked('dispute', 'dp'), 2);
  open.apply(happened('parked-dispute', 'WorkParked', { entity: 'dp', transaction_id: 'a', step: 'dispute' }));
  assert.is(open.timesParked('dispute', 'dp'), 0);
});

test('closes a purchase by no parking of other work that bears its id', () => {
  const open = openWork('0000');
  open.apply(bought('a', phone));
  const other = { entity: 'a', transaction_id: 'a', step: 'provider refund' };
  open.apply(happened('parked-refund', 'WorkParked', other));
  assert.equal(open.apply(happened('parked-refund', 'WorkRetried', { ...other, times: 1, reason: 'r' })), [
    { do: 'settle', instance: 'a', key: 'provider-refund' },
  ]);
  assert.is(open.purchase('a')?.stage, 'bought');
});

test('asks for an open purchase no second time where it is retried all the same', () => {
  const open = openWork('0000');
  open.apply(bought('a', phone));
  assert.equal([open.apply(retried('purchase', 'a')), open.purchase('a')?.stage], [[], 'bought']);
});

test('opens nothing again of a history that lacks the purchase', () => {
  const open = openWork('0000');
  open.apply(charged('a'));
  open.startReading('a');
  assert.equal([open.reopen('a', [charged('a')]), open.size(), open.reopening('a')], [[], 0, undefined]);
});

test('hands the trace of an event on to the work that it asks for', () => {
  const open = openWork('0000');
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const traced = bought('a', {});
  const plain = bought('b', {});
  open.apply({ ...traced, metadata: { ...traced.metadata, traceparent } });
  open.apply(plain);
  const { id, at, revision, metadata } = traced;
  const { correlationId } = metadata;
  assert.equal(open.purchase('a')?.last, { id, at, revision, correlationId, traceparent });
  assert.equal(open.purchase('b')?.last, { id: plain.id, at: plain.at, revision, correlationId });
});

test('knows the managers only that are listed', () => {
  const other = { resume: () => [] };
  assert.throws(() => openAll(MANAGERS, undefined).state(other, 'a'), /a process manager that is not listed/);
});

test('a charge that comes after its purchase was parked opens it again', () => {
  const open = openWork('0000');
  assert.equal(open.apply(charged('a')), [{ do: 'reopen', instance: 'a' }]);
  open.startReading('a');
  assert.equal(open.reopen('a', [bought('a', {}), charged('a')]), [{ do: 'issue', instance: 'a' }]);
});

test('issues the gifts of a charge parked just after it was confirmed', () => {
  const open = openWork('0000');
  open.apply(bought('a', phone));
  open.apply(charged('a'));
  assert.equal(
    open.apply(happened('parked-purchase', 'WorkParked', { entity: 'a', transaction_id: 'a', step: 'charge' })),
    [{ do: 'issue', instance: 'a' }],
  );
  assert.equal(open.apply(issued('a', 'g1', phone)), [notify('g1')]);
  assert.equal(
    open.apply(happened('parked-purchase', 'WorkParked', { entity: 'a', transaction_id: 'a', step: 'issue' })),
    [],
  );
  assert.equal([open.purchase('a'), [...open.resume()]], [undefined, [notify('g1')]]);
});

test('reopens no notification with its purchase: the notification is retried by itself', () => {
  const open = openWork('0000');
  const history = [bought('a', phone, phone, phone), charged('a'), issued('a', 'g1', phone), issued('a', 'g2', phone)];
  open.apply(retried('purchase', 'a', 'issue'));
  const again = retried('notification', 'g1', 'notify', 2);
  assert.equal(open.apply(again), [resend('g1', again)]);
  open.startReading('a');
  open.apply(parked('g2', 'a'));
  assert.equal(open.reopen('a', history), [{ do: 'issue', instance: 'a' }]);
  assert.is(open.notification('g1')?.transactionId, 'a');
  assert.equal([...open.resume()], [{ do: 'issue', instance: 'a' }, resend('g1', again)]);
});

test('folds only its own history for each of many purchases that are reopened at once', () => {
  const open = openWork('0000');
  const ids = Array.from({ length: 12 }, (_, index) => `a${index}`);
  let looks = 0;
  const counted = (event: RecordedEvent): RecordedEvent =>
    new Proxy(event, {
      get(target, key, receiver) {
        if (key === 'type') looks++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
  const histories = ids.map((id) => [
    bought(id, phone),
    charged(id),
    issued(id, `g-${id}`, phone),
    counted(told(`g-${id}`)),
    counted(happened(`gift-g-${id}`, 'GiftCancelled', { reason: 'x' })),
  ]);
  for (const id of ids) open.apply(retried('purchase', id));
  for (const id of ids) open.startReading(id);
  for (const [index, id] of ids.entries()) assert.equal(open.reopen(id, histories[index] ?? []), []);
  assert.is(open.size(), 0);
  assert.ok(looks < 200, `an event of theirs was looked at ${looks} times`);
});

test('holds the checkpoint back until a resend is done', () => {
  last = 10;
  const open = openWork('0010');
  const requested = happened('notification-g1', 'NotificationRequested', { transaction_id: 'a', attempt: 2 });
  assert.equal(open.apply(requested), [resend('g1', requested)]);
  open.apply(happened('notification-g1', 'NotificationStarted', { transaction_id: 'a', attempt: 2 }));
  assert.equal([open.size(), open.checkpoint()], [1, '0010']);
  const moved = happened('gift-g1', 'GiftReassigned', { transaction_id: 'a' });
  open.apply(moved);
  open.apply(happened('notification-g1', 'NotificationSent', { attempt: 2, asked_by: requested.id }));
  open.notificationDone('g1', requested.id);
  assert.equal([open.size(), open.checkpoint()], [1, '0010'], 'what was asked for since is still to be done');
  open.notificationDone('g1', moved.id);
  assert.equal([open.size(), open.checkpoint(), open.oldestAt()], [0, '0014', undefined]);
  open.apply(happened('gift-g1', 'GiftReassigned', { transaction_id: 'a' }));
  open.apply(parked('g1', 'a'));
  assert.is(open.size(), 0);
  open.apply(retried('notification', 'g1', 'notify', 4));
  assert.is(open.timesParked('notification', 'g1'), 4);
  const since = open.notification('g1')?.last.id;
  open.apply(happened('gift-g1', 'GiftReassigned', { transaction_id: 'a' }));
  assert.equal([open.notificationDone('g1', since), open.timesParked('notification', 'g1')], [[], 4]);
  open.notificationDone('g1', open.notification('g1')?.last.id);
  assert.is(open.timesParked('notification', 'g1'), 0, 'what is parked later is parked for the first time');
});

test('a refund that was retried and is over in its stream holds nothing open', () => {
  const open = openWork(undefined);
  open.apply(retried('refund', 'r1', 'refund'));
  assert.equal([open.size(), open.timesParked('refund', 'r1'), open.checkpoint()], [1, 1, undefined]);
  open.refundDone('r1');
  assert.equal(
    [open.refund('r1'), open.size(), open.timesParked('refund', 'r1'), open.checkpoint()],
    [undefined, 0, 0, open.position()],
  );
  open.refundDone('r1');
  assert.equal([...open.resume()], []);
});

test('opens retried refunds and disputes again, and ignores unknown managers', () => {
  const open = openWork('0000');
  assert.equal(open.apply(retried('refund', 'r1', 'refund')), [{ do: 'refund', instance: 'r1' }]);
  assert.is(open.refund('r1')?.retried?.at, open.position());
  assert.equal(open.apply(retried('refund', 'a', 'provider refund')), [
    { do: 'settle', instance: 'a', key: 'provider-refund' },
  ]);
  assert.equal(open.apply(retried('dispute', 'dp', 'dispute', 2)), [
    { do: 'settle', instance: 'a', key: 'dispute:dp' },
  ]);
  assert.equal([open.size(), open.timesParked('dispute', 'dp')], [2, 2]);
  open.reversalDone('a', 'dispute:dp');
  assert.is(open.timesParked('dispute', 'dp'), 0, 'it is done');
  open.apply(happened('parked-refund', 'WorkParked', { entity: 'a', transaction_id: 'a', step: 'provider refund' }));
  open.apply(happened('parked-refund', 'WorkParked', { entity: 'r1', transaction_id: 'a', step: 'refund' }));
  assert.is(open.size(), 0);
  assert.equal(open.apply(retried('later', 'x')), []);
  assert.equal(open.apply(happened('parked-later', 'WorkParked', { entity: 'x', transaction_id: 'x', step: 'y' })), []);
});

test('holds notifications back until a refund has decided or is parked', () => {
  const open = openWork(undefined);
  const step = (type: string, refund_id: string, ...gift_ids: string[]): object =>
    open.apply(happened('transaction-a', type, { refund_id, gift_ids, collected: {} }));
  open.apply(bought('a', phone, phone, phone));
  open.apply(charged('a'));
  step('RefundRequested', 'r1', 'g1', 'g2');
  for (const gift of ['g1', 'g2', 'g3']) assert.equal(open.apply(issued('a', gift, phone)), [notify(gift)]);
  assert.equal(
    ['g1', 'g2', 'g3'].map((gift) => open.isUndecided(gift)),
    [true, true, false],
  );
  assert.equal(step('RefundStarted', 'r1', 'g1'), [
    { do: 'release', instance: 'r1', giftId: 'g1' },
    { do: 'release', instance: 'r1', giftId: 'g2' },
  ]);
  assert.is(open.isUndecided('g1'), false);
  open.apply(told('g2'));
  step('RefundRequested', 'r2', 'g2', 'g3');
  open.apply(happened('notification-g2', 'NotificationRequested', { transaction_id: 'a', attempt: 2 }));
  assert.equal(step('NothingRefunded', 'r2'), [
    { do: 'release', instance: 'r2', giftId: 'g2' },
    { do: 'release', instance: 'r2', giftId: 'g3' },
  ]);
  step('RefundRequested', 'r3', 'g3', 'unknown');
  assert.equal(
    open.apply(happened('parked-refund', 'WorkParked', { entity: 'r3', transaction_id: 'a', step: 'refund' })),
    [
      { do: 'release', instance: 'r3', giftId: 'g3' },
      { do: 'release', instance: 'r3', giftId: 'unknown' },
    ],
  );
  assert.equal([open.isUndecided('g3'), open.isUndecided('unknown')], [false, false]);
  step('RefundRequested', 'r4', 'g3');
  step('RefundRequested', 'r5', 'g3');
  step('NothingRefunded', 'r4');
  assert.is(open.isUndecided('g3'), true, 'the other refund has not decided');
});

test.run();
