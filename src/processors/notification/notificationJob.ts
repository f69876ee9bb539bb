import { readGiftAndNotification } from '../../commands/readStreams.js';
import { notificationAttempts } from '../../domain/notification.js';
import type { EventStore } from '../../ports/eventStore.js';
import { refundManager } from '../refund/manager.js';
import { type Job, NotYetError, type OpenStates, type ParkAs, type PoolSize } from '../runner/index.js';
import { notificationKey } from './notificationKey.js';
import type { NotifyDeps } from './notifyStep.js';

const NOTIFICATIONS: PoolSize = { atOnce: 64 };

export const NOTIFY_STEP = 'notify';

export const parkNotificationAs = (giftId: string): ParkAs => ({
  name: 'notification',
  entity: giftId,
  step: NOTIFY_STEP,
});

/** First notifications and resends share the gift's one key, so one job at a time notifies its receiver. */
export function notificationJob(
  giftId: string,
  { run, ...job }: Pick<Job, 'transactionId' | 'cause' | 'run' | 'once'>,
  open: OpenStates,
  { retryPolicy }: Pick<NotifyDeps, 'retryPolicy'>,
): Job {
  return {
    ...job,
    key: notificationKey(giftId),
    pool: NOTIFICATIONS,
    parkAs: parkNotificationAs(giftId),
    run: async (attempt) => {
      // The refund may still cancel the gift; it wakes the jobs of the gifts that it leaves.
      if (open.byKey(refundManager, giftId) !== undefined)
        throw new NotYetError('a refund decides on the gift first', retryPolicy.retryAtMostMs);
      await run(attempt);
    },
  };
}

/** @throws UnavailableError */
export async function isNotified(events: EventStore, giftId: string): Promise<boolean> {
  const [gift, notification] = await readGiftAndNotification(events, giftId);
  return gift.length > 0 && notificationAttempts(gift, notification).next.do === 'nothing';
}
