import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { refundMoney, type RefundMoneyDeps, wasMadeConcurrently } from '../../../src/processors/refund/refundStep.js';
import { GiveUpError } from '../../../src/processors/runner/retry.js';
import type { WalletPayments } from '../../../src/processors/purchase/walletPayments.js';
import type { RefundRequest } from '../../../src/messages/payments.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { rejects } from '../../support/assertions/rejects.js';

const test = suite('giving money back');

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const request = (more: Partial<RefundRequest>): RefundRequest => ({
  refund_id: 'r1',
  attempt: 1,
  transaction_id: 't1',
  amount: 250,
  provider: 'stripe',
  charge_id: 'pi_1',
  payment_reference: 'pm_card_visa',
  started_at: '2026-03-01T11:00:00.000Z',
  ...more,
});
const reason = { commandId: 'c', cause: { id: 'e', at: '', revision: 0, correlationId: 'r' } };

function depsWith(
  answer: object,
  credited: 'credited' | 'refused' = 'credited',
): { deps: RefundMoneyDeps; requested: unknown[] } {
  const requested: unknown[] = [];
  const wallets: WalletPayments = {
    pay: async () => 'refused',
    refund: async (...args) => {
      requested.push(args.slice(0, 4));
      return credited;
    },
  };
  const bus = {
    engine: 'none',
    request: async <R>(subject: string, payload: object): Promise<R> => {
      requested.push([subject, payload]);
      return answer as R;
    },
    serve: () => Promise.reject(new Error('not here')),
    publish: async () => undefined,
    subscribe: () => Promise.reject(new Error('not here')),
    ping: async () => undefined,
    close: async () => undefined,
  };
  return {
    requested,
    deps: {
      bus,
      wallets,
      now: () => NOW,
      retryPolicy: { answerMs: 10, askAgainMs: 20 * 3_600_000 },
      mayAct: () => undefined,
    },
  };
}

test("a card's provider is asked, and after 20 h only looked up", async () => {
  const refunded = { outcome: 'refunded', provider: 'stripe', refund_ref: 're_1', simulated: false };
  const { deps, requested } = depsWith(refunded);
  assert.equal(await refundMoney(deps, request({}), true, reason), refunded);
  assert.equal(requested.pop(), [SUBJECTS.refund, request({})]);
  const late = depsWith({ outcome: 'never' });
  assert.equal(await refundMoney(late.deps, request({ started_at: '2026-02-28T16:00:00.000Z' }), true, reason), {
    outcome: 'never',
  });
  assert.equal(late.requested, [
    [
      SUBJECTS.lookUpRefund,
      { refund_id: 'r1', attempt: 1, provider: 'stripe', charge_id: 'pi_1', started_at: '2026-02-28T16:00:00.000Z' },
    ],
  ]);
  await rejects(
    refundMoney(depsWith({ outcome: 'impossible', cause: 'taken by simulated' }).deps, request({}), true, reason),
    GiveUpError,
    /taken by/,
  );
});

test('looks first on a repeat, and asks for nothing refunded by hand meanwhile', async () => {
  const made = { outcome: 'refunded', provider: 'stripe', refund_ref: 're_1', simulated: false };
  const again = depsWith(made);
  assert.equal(await refundMoney(again.deps, request({}), false, reason), made);
  assert.equal(
    again.requested.map((one) => (one as [string])[0]),
    [SUBJECTS.lookUpRefund],
  );
  for (const started_at of ['2026-03-01T11:00:00.000Z', '2026-02-28T11:00:00.000Z']) {
    const byHand = depsWith({ outcome: 'never', others: 1 });
    assert.equal(await refundMoney(byHand.deps, request({ started_at }), false, reason), { outcome: 'by hand' });
    assert.equal(
      byHand.requested.map((one) => (one as [string])[0]),
      [SUBJECTS.lookUpRefund],
    );
  }
});

test('knows by a look-up under the next attempt whether money went back since a refusal', async () => {
  const answers = [
    { outcome: 'refunded', provider: 'stripe', refund_ref: 're_1', simulated: false },
    { outcome: 'never', others: 1 },
    { outcome: 'never', others: 0 },
    { outcome: 'never' },
    { outcome: 'refused', provider: 'stripe', code: 'x', simulated: false },
  ];
  const made: boolean[] = [];
  for (const answer of answers) {
    const { deps, requested } = depsWith(answer);
    made.push(await wasMadeConcurrently(deps, request({ attempt: 2 })));
    const { refund_id, provider, charge_id, started_at } = request({});
    assert.equal(requested, [[SUBJECTS.lookUpRefund, { refund_id, attempt: 3, provider, charge_id, started_at }]]);
  }
  assert.equal(made, [true, true, false, false, false]);
  for (const provider of ['wallet', 'invoice']) {
    const { deps, requested } = depsWith({ outcome: 'never', others: 1 });
    assert.equal([await wasMadeConcurrently(deps, request({ provider })), requested], [false, []]);
  }
});

test('credits a prepaid wallet, and asks no provider for an invoice or nothing', async () => {
  const { deps, requested } = depsWith({});
  assert.equal(await refundMoney(deps, request({ provider: 'wallet', payment_reference: 'w1' }), true, reason), {
    outcome: 'refunded',
    provider: 'wallet',
    refund_ref: 'wallet-r1',
    simulated: false,
  });
  assert.equal(requested, [['w1', 't1', 250, 'r1']]);
  const poor = depsWith({}, 'refused').deps;
  assert.equal(await refundMoney(poor, request({ provider: 'wallet' }), true, reason), {
    outcome: 'refused',
    provider: 'wallet',
    code: 'more_than_was_debited',
    simulated: false,
  });
  assert.equal(await refundMoney(deps, request({ provider: 'invoice' }), true, reason), {
    outcome: 'refunded',
    provider: 'invoice',
    refund_ref: 'invoice-r1',
    simulated: false,
  });
  assert.equal(await refundMoney(deps, request({ amount: 0 }), true, reason), {
    outcome: 'refunded',
    provider: 'stripe',
    refund_ref: 'free-r1',
    simulated: false,
  });
  assert.is(requested.length, 1);
});

test('asks no worker once another process has the work', async () => {
  const { deps, requested } = depsWith({});
  const dead = {
    ...deps,
    mayAct: () => {
      throw new Error('passed on');
    },
  };
  await rejects(refundMoney(dead, request({}), true, reason), Error, /passed on/);
  assert.equal(requested, []);
});

test.run();
