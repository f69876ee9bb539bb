/** What staff are shown at the end of a run is held against the log. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { parkedId } from '../../src/domain/parked.js';
import { checkGifts } from './checks/gifts.js';
import { checkByHand, checkMoney } from './checks/money.js';
import { wrongParked, wrongPurchases, wrongTotals } from './checks/staff.js';
import { checkStreams } from './checks/streams.js';
import type { StoredEvent } from './engines/eventLog.js';
import { recordRows } from './engines/records.js';
import type { Finding } from './model/finding.js';
import { BY_HAND_PREFIX } from './service/paymentAccount.js';

const test = suite('simulation/staff');

let position = 0;
const event = (stream: string, type: string, data: object, user = 'sue', commandId = `${++position}`): StoredEvent => ({
  id: `${++position}`,
  stream,
  type,
  data: JSON.stringify(data),
  revision: position,
  position: `${position}`,
  at: '',
  metadata: JSON.stringify({ commandId, by: { user } }),
});
const texts = (findings: readonly Finding[]): string => findings.map(({ text }) => text).join('\n');

const BOUGHT = event('transaction-t', 'GiftsPurchased', { total: 400, seed: 'ab', receivers: [] });
const CHARGED = event('transaction-t', 'PaymentCharged', { amount: 400, provider: 'simulated', charge_id: 'c' });
const DECLINED = event('transaction-t', 'PaymentDeclined', {});
const BY_HAND = event('transaction-t', 'RefundedAtProvider', { amount: 100, total: 100 });

const row = (status: string, refunded: number) => ({ transaction_id: 't', paid: 400, refunded, total: 400, status });

test('finds a purchase that is missing, or whose status or refunded money is not that of the log', () => {
  const stored = [BOUGHT, CHARGED, BY_HAND];
  assert.equal(texts(wrongPurchases([row('partially_refunded', 100)], stored)), '');
  assert.match(texts(wrongPurchases([], stored)), /in the log t 400 100 partially_refunded/);
  assert.match(texts(wrongPurchases([row('partially_refunded', 0)], stored)), /one is t 400 0/);
  const disputed = [...stored, event('transaction-t', 'DisputeOpened', { dispute_id: 'd', amount: 400 })];
  assert.equal(texts(wrongPurchases([row('disputed', 100)], disputed)), '');
  assert.match(texts(wrongPurchases([row('partially_refunded', 100)], disputed)), /in the log t 400 100 disputed/);
});

test('finds totals that are not those of the log, and a check that fails', () => {
  const none = { issued: 0, replaced: 0, redeemed: 0, unredeemed: 0, refunded_value: 0, charged_back: 0 };
  const body = (agree: boolean, sums: object) => ({ check: { agree }, sums: { ...none, ...sums } });
  assert.equal(texts(wrongTotals(body(true, { refunded_value: 100 }), [BOUGHT, CHARGED, BY_HAND])), '');
  assert.equal(texts(wrongTotals(body(true, {}), [BOUGHT, BY_HAND, DECLINED])), '');
  assert.match(texts(wrongTotals(body(true, {}), [BOUGHT, CHARGED, BY_HAND])), /refunded_value is 0, by the log 100/);
  assert.match(texts(wrongTotals(body(false, {}), [])), /their check fails/);
});

test('finds parked work in another state, or in no group', () => {
  const work = { entity: 't', step: 'charge', times: 1 };
  const parked = event('parked-purchase', 'WorkParked', work, 'system:process-managers');
  const retried = event('parked-purchase', 'WorkRetried', work);
  const shown = (state: string, user?: string) => [
    { id: parkedId('purchase', 't'), state, times: 1, by: user === undefined ? null : { user } },
  ];
  assert.equal(texts(wrongParked(shown('parked'), [{ count: 1 }], [parked])), '');
  assert.match(texts(wrongParked(shown('parked'), [], [parked])), /0 pieces in groups, 1 wait/);
  assert.equal(texts(wrongParked(shown('retried', 'sue'), [], [parked, retried])), '');
  assert.match(texts(wrongParked(shown('retried', 'pam'), [], [parked, retried])), /retried 1 sue/);
});

test('finds a discarded charge that stays open, and money given back by hand that the log does not know', () => {
  const work = { entity: 't', step: 'charge', times: 1, cause: '' };
  const [parked, discarded] = ['WorkParked', 'WorkDiscarded'].map((type) => event('parked-purchase', type, work));
  assert.ok(parked !== undefined && discarded !== undefined);
  const ledger = recordRows();
  assert.equal(texts(checkMoney({ stored: [BOUGHT, parked] }, ledger)), '');
  assert.equal(texts(checkMoney({ stored: [BOUGHT, parked, discarded, DECLINED] }, ledger)), '');
  assert.match(texts(checkMoney({ stored: [BOUGHT, parked, discarded] }, ledger)), /neither charged nor declined/);
  assert.equal(texts(checkGifts({ stored: [BOUGHT, parked, discarded, DECLINED] })), '');
  ledger.put(`${BY_HAND_PREFIX}t/1`, JSON.stringify({ amount: 150, transaction_id: 't', at: 0 }), {}, 0);
  assert.match(texts(checkByHand({ stored: [BOUGHT, CHARGED, BY_HAND] }, ledger)), /150 .* by hand, the log says 100/);
});

test('takes the decisions of one command on several pieces of parked work for what they are', () => {
  const decided = (entity: string) =>
    event('parked-refund', 'WorkRetried', { entity, step: 'refund', times: 1 }, 'sue', 'one command');
  assert.equal(texts(checkStreams([decided('a'), decided('b')])), '');
  assert.match(texts(checkStreams([decided('a'), decided('b'), decided('a')])), /a command that had appended before/);
});

test.run();
