import { parkedNameOf } from '../../domain/parked.js';
import { idOf } from '../../domain/streamName.js';
import { purchaseManager } from '../purchase/manager.js';
import type { ProcessManager } from '../runner/index.js';
import { isNotified, notificationJob, NOTIFY_STEP, parkNotificationAs } from './notificationJob.js';
import { attemptMemory, notify, type NotifyDeps } from './notifyStep.js';
import {
  type NotificationIntent,
  type NotificationTrigger,
  type NotificationWork,
  reactToNotification,
  resumeNotification,
} from './state.js';

export const notificationManager: ProcessManager<
  NotificationWork,
  NotificationTrigger,
  NotificationIntent,
  NotifyDeps
> = {
  name: 'notification',
  steps: [NOTIFY_STEP],
  events: {
    GiftIssued: true,
    NotificationStarted: true,
    NotificationSent: true,
    NotificationFailed: true,
    WorkParked: true,
  },
  instancesOf(event, open) {
    switch (event.type) {
      case 'GiftIssued':
        // Without an open purchase the receivers' phone numbers are unknown.
        return open.state(purchaseManager, event.data.transaction_id) === undefined ? [] : [idOf(event.stream)];
      case 'NotificationStarted':
      case 'NotificationSent':
      case 'NotificationFailed':
        return event.data.attempt === 1 ? [idOf(event.stream)] : [];
      case 'WorkParked':
        return parkedNameOf(event.stream) === 'notification' ? [event.data.entity] : [];
      default:
        return event satisfies never;
    }
  },
  react: reactToNotification,
  resume: resumeNotification,
  partOf: { manager: purchaseManager, ownerOf: ({ transactionId }) => transactionId },
  parkAs: ({ instance }) => parkNotificationAs(instance),
  jobs(intent, open, deps) {
    const giftId = intent.instance;
    const work = (): NotificationWork | undefined => open.state(notificationManager, giftId);
    const transactionId = work()?.transactionId;
    if (transactionId === undefined) return [];
    const memory = attemptMemory();
    const run = async (): Promise<void> => {
      const now = work();
      const purchase = open.state(purchaseManager, transactionId)?.purchase;
      if (now !== undefined && purchase !== undefined) await notify(deps, { giftId, work: now, purchase }, memory);
    };
    return [notificationJob(giftId, { transactionId, cause: () => work()?.last, run, once: true }, open, deps)];
  },
  isSettled: (events, { entity }) => isNotified(events, entity),
};
