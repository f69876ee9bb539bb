import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type ReversalTrigger,
  type ReversalWork,
  endStep,
  parkReversalAs,
  reactToReversal,
  resumeReversals,
} from '../../../src/processors/dispute/state.js';

const test = suite('dispute process');

const provider = 'p';
const opened: ReversalTrigger = {
  type: 'DisputeOpened',
  data: { provider, dispute_id: 'dp', amount: 1, reason: 'r' },
};
const closed = (outcome: 'won' | 'lost'): ReversalTrigger => ({
  type: 'DisputeClosed',
  data: { provider, dispute_id: 'dp', outcome },
});
const settled: ReversalTrigger = { type: 'DisputeSettled', data: { dispute_id: 'dp', blocked: true, gifts: 1 } };
const refunded = (total: number): ReversalTrigger => ({
  type: 'RefundedAtProvider',
  data: { provider, charge_id: 'c', amount: total, total },
});
const answered = (total: number, difference = 0): ReversalTrigger => ({
  type: 'ProviderRefundSettled',
  data: { total, cancelled: 1, vouchered: 0, difference },
});
const parked = (step: string, entity: string): ReversalTrigger => ({
  type: 'WorkParked',
  data: { entity, transaction_id: 't', step, cause: 'y', event_id: 'e', times: 1 },
});
const retried = (step: string, entity: string): ReversalTrigger => ({
  type: 'WorkRetried',
  data: { entity, transaction_id: 't', step, times: 1, reason: 'r' },
});

/** Given these events: what is open, and what the last of them asks for. */
function given(...events: readonly ReversalTrigger[]): {
  work: ReversalWork | undefined;
  requested: readonly string[];
  left: readonly string[];
} {
  let work: ReversalWork | undefined;
  let requested: readonly string[] = [];
  for (const [revision, event] of events.entries()) {
    const reaction = reactToReversal(work, event, 't', {
      id: `e${revision}`,
      at: '2026-01-01T00:00:00.000Z',
      revision,
      correlationId: 'r',
    });
    work = reaction.state;
    requested = reaction.intents.map(({ key }) => key);
  }
  return { work, requested, left: work === undefined ? [] : resumeReversals(work, 't').map(({ key }) => key) };
}

test('answers a dispute when it opens and when it closes', () => {
  assert.equal(given(opened).requested, ['dispute:dp']);
  assert.equal(given(opened).left, ['dispute:dp']);
  assert.is(given(opened, settled).work, undefined);
  assert.equal(given(closed('won')).requested, ['dispute:dp']);
  assert.equal(given(opened, closed('won')).left, ['dispute:dp']);
  assert.is(given(opened, closed('won'), settled).work, undefined);
  assert.equal(given(opened, refunded(250), settled, closed('lost')).requested, [], 'they stand blocked already');
  assert.is(given(settled).work, undefined, 'what was done before the feed began');
});

test('answers external refunds, and keeps a shortfall open until it is parked', () => {
  assert.equal(given(refunded(250)).requested, ['provider-refund']);
  assert.is(given(refunded(250), answered(250)).work, undefined);
  const short = given(refunded(250), answered(250, 100));
  assert.equal([short.requested, short.left], [[], ['provider-refund']]);
  assert.is(short.work?.shortfall?.difference, 100);
  assert.is(given(refunded(250), answered(250, 100), parked('provider refund', 't')).work, undefined);
  assert.equal(given(refunded(250), answered(250, 100), parked('dispute', 'dp')).left, ['provider-refund']);
});

test('closes parked work until a new event asks', () => {
  assert.equal(given(opened, parked('dispute', 'dp')).requested, []);
  assert.equal(given(opened, refunded(250)).requested, ['provider-refund'], 'and not the dispute again');
  assert.is(given(opened, parked('dispute', 'dp')).work, undefined);
  assert.equal(given(opened, parked('dispute', 'dp'), closed('won')).requested, ['dispute:dp']);
  assert.equal(given(opened, refunded(250), parked('dispute', 'dp')).left, ['provider-refund']);
  assert.equal(given(opened, refunded(250), parked('dispute', 'dp'), closed('won')).left, [
    'dispute:dp',
    'provider-refund',
  ]);
  assert.is(given(parked('dispute', 'dp')).work, undefined);
});

test('keeps retried work open until it is done or parked again', () => {
  const back = retried('provider refund', 't');
  assert.equal([given(back).requested, given(back).left], [['provider-refund'], ['provider-refund']]);
  assert.equal(
    [given(opened, parked('dispute', 'dp'), retried('dispute', 'dp')).left, given(back, opened, settled).left],
    [['dispute:dp'], ['provider-refund']],
  );
  assert.is(given(back, parked('provider refund', 't')).work, undefined);
  const { work } = given(back);
  assert.is(work === undefined ? work : endStep(work, 'provider-refund'), undefined);
});

test('closes what the stream says is done', () => {
  const { work } = given(opened, refunded(250));
  if (work === undefined) throw new Error('nothing is open');
  const rest = endStep(work, 'dispute:dp');
  assert.equal(rest === undefined ? [] : resumeReversals(rest, 't').map(({ key }) => key), ['provider-refund']);
  assert.is(rest === undefined ? undefined : endStep(rest, 'provider-refund'), undefined);
});

test('parks under the dispute or the transaction', () => {
  assert.equal(parkReversalAs('t', 'dispute:dp:1'), { name: 'dispute', entity: 'dp:1', step: 'dispute' });
  assert.equal(parkReversalAs('t', 'provider-refund'), { name: 'refund', entity: 't', step: 'provider refund' });
});

test.run();
