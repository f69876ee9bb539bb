import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { boughtBy, byUserProjection, methodsOf, namedIn, numbersOf } from '../../src/projections/byUser.js';
import { timeKey } from '../../src/projections/timeKey.js';

const test = suite('projections/byUser');

const AT = '2026-03-01T10:00:00.000Z';
const idsOf = (stream: string, type: string, data: object): readonly string[] =>
  byUserProjection.documentIds({ stream, type, data, at: AT } as RecordedEvent);

test('leads from a user to what they bought, their numbers and payment methods', () => {
  const bought = idsOf('transaction-t1', 'GiftsPurchased', { buyer_id: 'ann', transaction_id: 't1' });
  assert.equal(bought, [`bought/ann/${timeKey(AT)}/t1`]);
  assert.is(bought[0]?.startsWith(boughtBy('ann')), true);
  assert.is(namedIn(bought[0] ?? ''), 't1');
  assert.equal(idsOf('phone-p1', 'PhoneTaken', { user_id: 'ann' }), [`${numbersOf('ann')}p1`]);
  assert.equal(idsOf('paymentMethod-pm', 'PaymentMethodAdded', { users: ['ann', 'bob', 'ann'] }), [
    `${methodsOf('ann')}pm`,
    `${methodsOf('bob')}pm`,
  ]);
  assert.equal(idsOf('paymentMethod-pm', 'PaymentMethodChanged', { prepaid: true }), []);
});

test('times sort as text as they do as times', () => {
  const times = [
    '1970-01-01T00:00:00.000Z',
    '2026-03-01T10:00:00.000Z',
    '2026-03-01T10:00:00.001Z',
    '2999-01-01T00:00:00.000Z',
  ];
  assert.equal(times.map(timeKey).toSorted(), times.map(timeKey));
  assert.equal(
    times.map((at) => timeKey(at).length),
    [9, 9, 9, 9],
  );
});

test.run();
