import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  discardWork,
  evolveParked,
  parkedId,
  parkedNameOf,
  parkedStream,
  parkingId,
  type ParkedEvent,
  type ParkedWork,
  retryWork,
  type WorkParked,
} from '../../src/domain/parked.js';
import { refusal } from '../support/assertions/rejects.js';

const test = suite('domain/parked');
const work = { entity: 'e', transaction_id: 't', step: 'charge' };
const parked = (times = 1): WorkParked => ({
  type: 'WorkParked',
  data: { ...work, cause: 'down', event_id: 'x', times },
});
const retried: ParkedEvent = { type: 'WorkRetried', data: { ...work, times: 1, reason: 'works again' } };
const discarded: ParkedEvent = { type: 'WorkDiscarded', data: { ...work, times: 1, reason: 'paid by hand' } };
const after = (...events: readonly ParkedEvent[]): ParkedWork => {
  const state = events.reduce<ParkedWork | undefined>(evolveParked, undefined);
  if (state === undefined) throw new Error('nothing was parked');
  return state;
};

test('its streams', () => {
  assert.is(parkedStream('refund'), 'parked-refund');
  assert.is(parkedNameOf('parked-notification'), 'notification');
  assert.is(parkedNameOf('parked-x'), undefined);
});

test('gives each entity of a process manager an id that hides both', () => {
  assert.match(parkedId('purchase', 'e'), /^[0-9a-f]{32}$/);
  assert.is.not(parkedId('purchase', 'e'), parkedId('notification', 'e'));
  assert.is(parkedId('purchase', 'e'), parkedId('purchase', 'e'));
});

test('gives the parking event a UUID, the same for the same work', () => {
  const { cause: _, ...data } = parked(1).data;
  const id = parkingId('purchase', data);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.is(parkingId('purchase', { ...work, event_id: 'x', times: 1 }), id);
  const others = [
    parkingId('notification', data),
    ...[{ entity: 'f' }, { step: 'issue' }, { event_id: 'y' }, { times: 2 }].map((other) =>
      parkingId('purchase', { ...data, ...other }),
    ),
  ];
  assert.is(new Set([id, ...others]).size, 6);
  assert.is(id, 'a35debe8-eea7-8d6e-9618-ca9a3cd0ce93', 'as in each release');
});

test('folds work that is parked, retried, parked again and discarded', () => {
  assert.equal(after(parked()), { ...work, cause: 'down', times: 1, state: 'parked' });
  assert.is(after(parked(), retried).state, 'retried');
  assert.equal(after(parked(), retried, parked(2)), { ...work, cause: 'down', times: 2, state: 'parked' });
  assert.is(after(parked(), discarded).state, 'discarded');
  assert.throws(() => evolveParked(undefined, retried), /never parked/);
});

test('hands parked work back once', () => {
  assert.equal(retryWork('purchase', after(parked()), 'works again'), [retried]);
  assert.equal(retryWork('purchase', after(parked(), retried), 'again'), []);
  assert.equal(retryWork('purchase', after(parked(), retried, parked(2)), 'again'), [
    { type: 'WorkRetried', data: { ...work, times: 2, reason: 'again' } },
  ]);
  assert.equal(retryWork('refund', after(parked(), discarded), 'by mistake')[0]?.type, 'WorkRetried');
  const issue = { ...after(parked(), discarded), step: 'issue gifts' };
  assert.equal(retryWork('purchase', issue, 'by mistake')[0]?.type, 'WorkRetried');
  for (const name of ['notification', 'purchase'] as const)
    assert.throws(() => retryWork(name, after(parked(), discarded), 'by mistake'), refusal('work_discarded'));
});

test('discards waiting work once, and no work that was handed back', () => {
  assert.equal(discardWork(after(parked()), 'paid by hand'), [discarded]);
  assert.equal(discardWork(after(parked(), discarded), 'again'), []);
  assert.throws(() => discardWork(after(parked(), retried), 'x'), refusal('work_retried'));
});

test.run();
