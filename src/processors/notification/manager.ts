import { readGiftAndNotification } from '../../commands/readStreams.js';
import { notificationAttempts } from '../../domain/notification.js';
import { parkedNameOf } from '../../domain/parked.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore } from '../../ports/eventStore.js';
import { refundManager } from '../refund/manager.js';
import { NotYetError, type PoolSize, type ProcessManager } from '../runner/index.js';
import { type AttemptMemory, notify, type NotifyDeps } from './notifyStep.js';
import {
  type NotificationIntent,
  notificationKey,
  type NotificationTrigger,
  type NotificationWork,
  reactToNotification,
  resumeNotification,
} from './state.js';

const NOTIFICATIONS: PoolSize = { atOnce: 64 };
const STEP = 'notify';

export const notificationManager: ProcessManager<
  NotificationWork,
  NotificationTrigger,
  NotificationIntent,
  NotifyDeps
> = {
  name: 'notification',
  steps: [STEP],
  events: {
    GiftIssued: true,
    GiftReleased: true,
    GiftReassigned: true,
    GiftUnblocked: true,
    ReminderDue: true,
    NotificationRequested: true,
    NotificationSent: true,
    ReminderSent: true,
    NotificationFailed: true,
    WorkParked: true,
    WorkRetried: true,
  },
  instancesOf(event) {
    if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return [idOf(event.stream)];
    return parkedNameOf(event.stream) === 'notification' ? [event.data.entity] : [];
  },
  react: reactToNotification,
  resume: resumeNotification,
  done: (work, { requestedBy }) => ({ state: work.last.id === requestedBy ? undefined : work, intents: [] }),
  parkAs: ({ instance }) => ({ name: 'notification', entity: instance, step: STEP }),
  jobs(intent, open, deps) {
    const giftId = intent.instance;
    const work = (): NotificationWork | undefined => open.state(notificationManager, giftId);
    const transactionId = work()?.transactionId;
    if (transactionId === undefined) return [];
    const memory: AttemptMemory = { unsent: undefined };
    const run = async (): Promise<void> => {
      // The refund may still cancel the gift; it wakes the jobs of the gifts that it leaves.
      if (open.byKey(refundManager, giftId) !== undefined)
        throw new NotYetError('a refund decides on the gift first', deps.retryPolicy.retryAtMostMs);
      for (let now = work(); now !== undefined; now = work())
        if (!(await notify(deps, giftId, now.last, memory))) return;
    };
    return [
      {
        key: notificationKey(giftId),
        pool: NOTIFICATIONS,
        transactionId,
        parkAs: notificationManager.parkAs(intent),
        cause: () => work()?.last,
        run,
      },
    ];
  },
  isSettled: (events, { entity }) => isNotified(events, entity),
  // A gift's issue is always followed by the answer to it.
  settledBefore: async (events, { do: intent, instance }) => intent === 'resend' && isNotified(events, instance),
};

async function isNotified(events: EventStore, giftId: string): Promise<boolean> {
  const [gift, notification] = await readGiftAndNotification(events, giftId);
  return gift.length > 0 && notificationAttempts(gift, notification).next.do === 'nothing';
}
