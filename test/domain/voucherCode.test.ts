import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Happened, fold } from '../../src/domain/decider.js';
import {
  type VoucherCode,
  type VoucherCodeEvent,
  addVoucherCode,
  assignVoucherCode,
  voucherCodeAggregate,
  voucherCodeOfStream,
  voucherCodeStream,
  withdrawVoucherCode,
} from '../../src/domain/voucherCode.js';

const added = { segment_id: 's', code: 'C', pin: '1' };
const after = (...events: VoucherCodeEvent[]): VoucherCode =>
  fold(
    voucherCodeAggregate,
    events.map((event): Happened<VoucherCodeEvent> => ({ ...event, at: '2026-01-01T00:00:00.000Z' })),
  );
const isAdded: VoucherCodeEvent = { type: 'VoucherCodeAdded', data: added };
const free = after(isAdded);
const assigned = after(isAdded, { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } });
const withdrawn = after(isAdded, { type: 'VoucherCodeWithdrawn', data: { reason: '' } });
const test = suite('domain/voucherCode');

test('reads segment and hash from a stream name, dashes in the segment or not', () => {
  const hash = 'abcdefghij-lmnopqrst_v';
  assert.equal(voucherCodeOfStream(voucherCodeStream('seg-1', hash)), { segment_id: 'seg-1', hash });
});

test('a code is added once, and again after it was withdrawn', () => {
  assert.equal(addVoucherCode({ status: 'none' }, added), [isAdded]);
  assert.equal(addVoucherCode(free, added), []);
  assert.equal(addVoucherCode(withdrawn, added), [isAdded]);
  assert.equal(after(isAdded, { type: 'VoucherCodeWithdrawn', data: { reason: '' } }, isAdded), free);
});

test('corrects a pin while the code is not given out', () => {
  assert.equal(addVoucherCode(free, { ...added, pin: '2' }), [{ type: 'VoucherCodeChanged', data: { pin: '2' } }]);
  assert.equal(after(isAdded, { type: 'VoucherCodeChanged', data: { pin: '2' } }), { ...free, pin: '2' });
  assert.equal(addVoucherCode(assigned, { ...added, pin: '2' }), []);
});

test('a free code is assigned once; the same gift again needs no event; others cannot have it', () => {
  assert.equal(assignVoucherCode(free, 'g'), [{ type: 'VoucherCodeAssigned', data: { gift_id: 'g' } }]);
  assert.equal(assignVoucherCode(assigned, 'g'), []);
  assert.is(assignVoucherCode(assigned, 'other'), undefined);
  assert.is(assignVoucherCode(withdrawn, 'g'), undefined);
  assert.is(assignVoucherCode({ status: 'none' }, 'g'), undefined);
});

test('only a free code is withdrawn', () => {
  assert.equal(withdrawVoucherCode(free, 'old'), [{ type: 'VoucherCodeWithdrawn', data: { reason: 'old' } }]);
  for (const state of [assigned, withdrawn, { status: 'none' } as const])
    assert.equal(withdrawVoucherCode(state, 'old'), []);
});

test('events before the first are ignored', () => {
  assert.equal(after({ type: 'VoucherCodeAssigned', data: { gift_id: 'g' } }), { status: 'none' });
});

test.run();
