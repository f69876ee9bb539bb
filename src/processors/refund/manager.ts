import { readPurchase } from '../../commands/readStreams.js';
import { parkedNameOf } from '../../domain/parked.js';
import { notificationKey } from '../notification/state.js';
import type { PoolSize, ProcessManager, StepDeps } from '../runner/index.js';
import { refund, type RefundDeps } from './refundStep.js';
import { reactToRefund, type RefundIntent, type RefundTrigger, type RefundWork, releases } from './state.js';

const REFUNDS: PoolSize = { atOnce: 16 };
const STEP = 'refund';

export const refundManager: ProcessManager<
  RefundWork,
  RefundTrigger,
  RefundIntent,
  RefundDeps & Pick<StepDeps, 'wake'>
> = {
  name: 'refund',
  steps: [STEP],
  events: {
    RefundRequested: true,
    RefundStarted: true,
    GiftsRefunded: true,
    RefundRefused: true,
    RefundFailed: true,
    NothingRefunded: true,
    WorkParked: true,
    WorkRetried: true,
  },
  instancesOf(event) {
    if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return [event.data.refund_id];
    const { entity, step } = event.data;
    return parkedNameOf(event.stream) === 'refund' && step === STEP ? [entity] : [];
  },
  react: reactToRefund,
  resume: (_work, instance) => [{ do: 'refund', instance }],
  // No further event comes for a refund that was retried after its end.
  done: (work, { instance }) => ({ state: undefined, intents: releases(work, instance) }),
  parkAs: ({ instance }) => ({ name: 'refund', entity: instance, step: STEP }),
  jobs(intent, open, deps) {
    if (intent.do === 'release') {
      deps.wake(notificationKey(intent.giftId));
      return [];
    }
    const work = (): RefundWork | undefined => open.state(refundManager, intent.instance);
    const transactionId = work()?.transactionId;
    if (transactionId === undefined) return [];
    const run = async (): Promise<void> => {
      if (work() !== undefined) await refund(deps, transactionId, intent.instance, work()?.retried);
    };
    return [
      {
        key: `refund/${intent.instance}`,
        pool: REFUNDS,
        transactionId,
        parkAs: refundManager.parkAs(intent),
        cause: () => work()?.last,
        run,
      },
    ];
  },
  keysOf: ({ undecided }) => undecided ?? NONE,
  async isSettled(events, { entity, transaction_id }) {
    const purchase = await readPurchase(events, transaction_id);
    const status = purchase.status === 'none' ? undefined : purchase.refunds.get(entity)?.status;
    return status === 'refunded' || status === 'nothing';
  },
};

const NONE: readonly string[] = [];
