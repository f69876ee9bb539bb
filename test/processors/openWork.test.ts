import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { openWork } from '../../src/processors/openWork.js';
import { eventOf } from '../support/house.js';

const test = suite('open work');

let last = 0;
function happened(stream: string, type: string, data: object): RecordedEvent {
  return { ...eventOf(type, data), stream, revision: 0, position: String(++last).padStart(4, '0') };
}
const bought = (id: string, ...receivers: object[]): RecordedEvent => happened(`transaction-${id}`, 'GiftsPurchased', { transaction_id: id, receivers });
const charged = (id: string): RecordedEvent => happened(`transaction-${id}`, 'PaymentCharged', {});
const issued = (id: string, gift: string, receiver: object): RecordedEvent => happened(`gift-${gift}`, 'GiftIssued', { transaction_id: id, index: 0, receiver });
const told = (gift: string, type = 'NotificationSent'): RecordedEvent => happened(`notification-${gift}`, type, {});
const parked = (entity: string, transaction_id: string): RecordedEvent => happened('parked-x', 'WorkParked', { entity, transaction_id });
const phone = { phone_number: '+44', phone_hash: 'h' };

test('the checkpoint is the highest position with nothing unfinished at or below it', () => {
  last = 10;
  const open = openWork('0010');
  assert.is(open.checkpoint(), '0010');
  open.apply(bought('a', {}));
  assert.is(open.checkpoint(), '0010');
  open.apply(bought('b', {}));
  open.apply(charged('a'));
  open.apply(issued('a', 'ga', {}));
  assert.is(open.size, 1);
  assert.is(open.checkpoint(), '0011', 'a is done, b is open');
  open.apply(happened('transaction-b', 'PaymentDeclined', {}));
  assert.is(open.checkpoint(), '0015');
  open.lookedAt('0042');
  assert.is(open.checkpoint(), '0042');
});

test('what is open is taken up anew', () => {
  const open = openWork(undefined);
  assert.is(open.checkpoint(), undefined);
  open.apply(bought('new', {}));
  open.apply(bought('asked', {}));
  open.apply(happened('transaction-asked', 'ChargeStarted', {}));
  open.apply(bought('paid', phone, phone, phone));
  assert.equal(open.apply(charged('paid')), [{ do: 'issue', transactionId: 'paid' }]);
  assert.equal(open.apply(issued('paid', 'g1', phone)), [{ do: 'tell', giftId: 'g1' }]);
  open.apply(issued('paid', 'g2', phone));
  open.apply(told('g2', 'NotificationStarted'));
  assert.equal([...open.resume()], [
    { do: 'charge', transactionId: 'new' },
    { do: 'charge', transactionId: 'asked' },
    { do: 'issue', transactionId: 'paid' },
    { do: 'tell', giftId: 'g1' },
    { do: 'find out', giftId: 'g2' },
  ]);
  assert.is(open.notification('g2')?.stage, 'started');
  assert.is(open.purchase('paid')?.toIssue, 1);
});

test('a parked telling ends only itself; a parked purchase ends with all its tellings', () => {
  const open = openWork(undefined);
  open.apply(bought('a', phone, phone));
  open.apply(charged('a'));
  open.apply(issued('a', 'g1', phone));
  open.apply(issued('a', 'g2', phone));
  open.apply(bought('b', phone));
  open.apply(charged('b'));
  open.apply(issued('b', 'g3', phone));
  open.apply(parked('g1', 'a'));
  assert.is(open.purchase('a')?.toTell, 1);
  open.apply(parked('a', 'a'));
  assert.is(open.purchase('a'), undefined);
  assert.is(open.notification('g2'), undefined);
  assert.equal([...open.resume()], [{ do: 'tell', giftId: 'g3' }]);
});

test('what was finished before the feed began is left alone', () => {
  const open = openWork('0000');
  for (const event of [charged('a'), issued('a', 'g1', phone), told('g1', 'NotificationStarted'), told('g1'), parked('a', 'a')]) assert.equal(open.apply(event), []);
  assert.equal([...open.resume()], []);
});

test('a refund is open from when it was asked for until its answer, a refused one until it is parked', () => {
  last = 10;
  const open = openWork('0010');
  const step = (type: string, refund_id: string): object => open.apply(happened('transaction-a', type, { refund_id }));
  assert.equal(step('RefundRequested', 'r1'), [{ do: 'refund', refundId: 'r1' }]);
  open.apply(bought('b', {}));
  assert.is(open.checkpoint(), '0010');
  assert.equal(step('RefundStarted', 'r1'), [], 'who wrote it goes on');
  assert.is(open.refund('r1')?.transactionId, 'a');
  assert.equal(step('GiftsRefunded', 'r1'), []);
  assert.is(open.checkpoint(), '0011');
  assert.equal(step('RefundStarted', 'late'), [{ do: 'refund', refundId: 'late' }], 'nobody asked for it: it begins here');
  open.apply(happened('transaction-b', 'PaymentDeclined', {}));
  assert.is(open.checkpoint(), '0014');
  step('RefundRefused', 'late');
  assert.equal([...open.resume()], [{ do: 'refund', refundId: 'late' }]);
  open.apply(happened('parked-refund', 'WorkParked', { entity: 'late', transaction_id: 'a', step: 'refund' }));
  assert.is(open.size, 0);
  step('RefundRequested', 'r2');
  step('NothingRefunded', 'r2');
  assert.is(open.checkpoint(), '0020');
  const fromTheBeginning = openWork(undefined);
  fromTheBeginning.apply(happened('transaction-a', 'RefundRequested', { refund_id: 'r1' }));
  fromTheBeginning.apply(bought('b', {}));
  assert.is(fromTheBeginning.checkpoint(), undefined);
});

test('of a gift that is cancelled nobody is to be told any more', () => {
  const open = openWork(undefined);
  open.apply(bought('a', phone));
  open.apply(charged('a'));
  open.apply(issued('a', 'ga', { phone_hash: 'h' }));
  open.apply(happened('gift-ga', 'GiftCancelled', { reason: 'x' }));
  open.apply(happened('gift-gb', 'GiftCancelled', { reason: 'x' }));
  assert.is(open.notification('ga')?.cancelled, true);
  assert.is(open.notification('gb'), undefined);
});

test.run();
