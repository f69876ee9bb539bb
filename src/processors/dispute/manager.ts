import { readPurchase } from '../../commands/readStreams.js';
import { reversalSteps } from '../../domain/purchase/disputes.js';
import { reversalsOf } from '../../domain/purchase/state.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { GiftChangeDeps } from '../purchase/giftChanges.js';
import type { PoolSize, ProcessManager } from '../runner/index.js';
import { settleReversal } from './disputeStep.js';
import {
  endStep,
  parkedKey,
  parkReversalAs,
  reactToReversal,
  resumeReversals,
  REVERSAL_STEPS,
  type ReversalIntent,
  type ReversalTrigger,
  type ReversalWork,
} from './state.js';

const STEPS: ReadonlySet<string> = new Set(REVERSAL_STEPS);
const REVERSALS: PoolSize = { atOnce: 4 };

export const disputeManager: ProcessManager<ReversalWork, ReversalTrigger, ReversalIntent, GiftChangeDeps> = {
  name: 'dispute',
  steps: REVERSAL_STEPS,
  events: {
    RefundedAtProvider: true,
    ProviderRefundSettled: true,
    DisputeOpened: true,
    DisputeClosed: true,
    DisputeSettled: true,
    WorkParked: true,
    WorkRetried: true,
  },
  instancesOf(event) {
    if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return [idOf(event.stream)];
    return STEPS.has(event.data.step) ? [event.data.transaction_id] : [];
  },
  react: reactToReversal,
  resume: resumeReversals,
  done: (work, { key }) => ({ state: endStep(work, key), intents: [] }),
  parkAs: ({ instance, key }) => parkReversalAs(instance, key),
  jobs(intent, open, deps) {
    const { instance, key } = intent;
    const work = (): ReversalWork | undefined => open.state(disputeManager, instance);
    return [
      {
        key: `dispute/${instance}/${key}`,
        pool: REVERSALS,
        transactionId: instance,
        parkAs: parkReversalAs(instance, key),
        cause: () => work()?.last.get(key),
        run: () => settleReversal(deps, instance, key, work()?.shortfall, work()?.retried.get(key)),
      },
    ];
  },
  isSettled: (events, work) => isAnswered(events, work.transaction_id, parkedKey(work)),
  // The end of a dispute whose gifts were blocked before the checkpoint looks unanswered.
  settledBefore: async (events, { instance, key }) =>
    parkReversalAs(instance, key).name === 'dispute' && isAnswered(events, instance, key),
};

async function isAnswered(events: EventStore, transactionId: string, key: string): Promise<boolean> {
  const purchase = await readPurchase(events, transactionId);
  return purchase.status !== 'none' && !reversalSteps(reversalsOf(purchase)).some((step) => step.key === key);
}
