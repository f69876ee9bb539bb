/** What answers show of purchases, held against histories made by hand. */
import { suite } from 'uvu';
import * as by from './handmade.js';
import { BOUGHT, lost, refusal, seen } from './handmade.js';
import { judgedBy } from './judged.js';
import type { Operation } from './operations.js';
import { checkTransactions } from './transactions.js';

const test = suite('purchases in a history');

const { explained, wrong } = judgedBy((history) => checkTransactions(history, by.INSTALLATION, { clockMs: 5 }));

const look: Operation = { kind: 'getTransaction', transaction: 't1' };
const shown = (status: string, more: object = {}): by.Said => ({ ...by.transaction({ status, ...more }), status: 200 });
const PENDING = seen('ann', by.purchase(), [0, 10], by.transaction({ status: 'pending' }));
const DECLINED: by.Said = {
  ...refusal('payment_declined'),
  headers: {
    'error-code': 'payment_declined',
    'transaction-id': 't1',
    'decline-code': 'generic_decline',
    location: '/',
  },
};

test('shows a purchase to its buyer only, as it is', () => {
  explained(BOUGHT, seen('ann', look, [20, 30], shown('charged')));
  explained(BOUGHT, seen('bob', look, [20, 30], refusal('transaction_not_found')));
  wrong([BOUGHT, seen('bob', look, [20, 30], shown('charged'))], /transaction not found/);
  wrong([BOUGHT, seen('ann', look, [20, 30], refusal('transaction_not_found'))], /#1 .*getTransaction/);
  wrong([BOUGHT, seen('ann', look, [20, 30], shown('pending'))], /#1 .*getTransaction/);
  wrong([BOUGHT, seen('ann', look, [20, 30], shown('charged', { retail: '3.51' }))], /#1 .*getTransaction/);
  wrong([BOUGHT, seen('ann', look, [20, 30], shown('charged', { gifts: ['g2'] }))], /#1 .*getTransaction/);
});

test('settles a purchase once', () => {
  explained(PENDING, seen('ann', look, [20, 30], shown('pending')), seen('ann', look, [40, 50], shown('charged')));
  wrong([PENDING, seen('ann', look, [20, 30], shown('charged')), seen('ann', look, [40, 50], shown('pending'))], /#2/);
  explained(PENDING, seen('ann', look, [20, 30], DECLINED), seen('ann', look, [40, 50], DECLINED));
  wrong(
    [PENDING, seen('ann', look, [20, 30], DECLINED), seen('ann', look, [40, 50], shown('charged'))],
    /None of these/,
  );
  wrong([seen('ann', by.purchase(), [0, 10], { ...DECLINED, headers: { 'transaction-id': 't1' } })], /decline-code/);
});

const refund = (key?: string): Operation => ({ kind: 'refund', transaction: 't1', gifts: [], key });
const back = (gifts: readonly string[], status = 'refunded'): by.Said => ({
  status: 200,
  body: { data: { id: 'f1', status, gift_ids: gifts, amount: 350 * gifts.length } },
});
const TWO = seen(
  'ann',
  by.purchase({ receivers: [{}, {}] }),
  [0, 10],
  by.transaction({ gifts: ['g1', 'g2'], retail: '7.00' }),
);
const two = (status: string): by.Said => shown(status, { gifts: ['g1', 'g2'], retail: '7.00' });

test('shows what was refunded', () => {
  const part = seen('sue', refund(), [20, 30], back(['g1']));
  explained(TWO, part, seen('ann', look, [40, 50], two('partially_refunded')));
  explained(TWO, part, seen('sue', refund(), [40, 50], back(['g2'])), seen('ann', look, [60, 70], two('refunded')));
  wrong([TWO, part, seen('ann', look, [40, 50], two('charged'))], /#2 .*getTransaction/);
  wrong([TWO, part, seen('ann', look, [40, 50], two('refunded'))], /#2 .*getTransaction/);
  wrong([TWO, part, seen('sue', refund(), [40, 50], back(['g1']))], /refund/);
  wrong([TWO, seen('ann', look, [40, 50], two('refunded'))], /#1 .*getTransaction/);
});

test('explains a refund of unknown outcome, and the repeat that tells it', () => {
  const unknown = lost('sue', refund('k'), 20);
  for (const status of ['charged', 'partially_refunded', 'refunded'])
    explained(TWO, unknown, seen('ann', look, [40, 50], two(status)));
  const repeat = seen('sue', refund('k'), [60, 70], by.again(back(['g1', 'g2'])));
  explained(TWO, unknown, seen('ann', look, [40, 50], two('refunded')), repeat);
  wrong([TWO, unknown, repeat, seen('ann', look, [80, 90], two('charged'))], /#3 .*getTransaction/);
});

test('explains a refund that is not accepted yet', () => {
  const waiting = seen('sue', refund(), [20, 30], back(['g1', 'g2'], 'requested'));
  for (const status of ['charged', 'refunded']) explained(TWO, waiting, seen('ann', look, [40, 50], two(status)));
  wrong([TWO, waiting, seen('ann', look, [40, 50], two('partially_refunded'))], /#2 .*getTransaction/);
});

test.run();
