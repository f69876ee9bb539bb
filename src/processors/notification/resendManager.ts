/** The process of all notifications except the first ones of gifts that are sent at once. */
import type { GiftReassigned, GiftReleased, GiftUnblocked, ReminderDue } from '../../domain/gift/events.js';
import type { NotificationRequested } from '../../domain/notification.js';
import { parkedNameOf, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import { idOf } from '../../domain/streamName.js';
import type { Cause, ProcessManager } from '../runner/index.js';
import { notificationManager } from './manager.js';
import { isNotified, notificationJob, NOTIFY_STEP, parkNotificationAs } from './notificationJob.js';
import { attemptMemory, type NotifyDeps } from './notifyStep.js';
import { resend } from './resendStep.js';

interface ResendWork {
  readonly transactionId: string;
  readonly last: Cause;
  /** Rises with each event that requests a notification. */
  readonly generation: number;
}

interface ResendIntent {
  readonly do: 'resend';
  readonly instance: string;
  readonly generation: number;
}

type ResendTrigger =
  NotificationRequested | GiftReassigned | GiftReleased | GiftUnblocked | ReminderDue | WorkParked | WorkRetried;

const resume = ({ generation }: ResendWork, instance: string): readonly ResendIntent[] => [
  { do: 'resend', instance, generation },
];

export const resendManager: ProcessManager<ResendWork, ResendTrigger, ResendIntent, NotifyDeps> = {
  name: 'notification',
  steps: [NOTIFY_STEP],
  events: {
    NotificationRequested: true,
    GiftReassigned: true,
    GiftReleased: true,
    GiftUnblocked: true,
    ReminderDue: true,
    WorkParked: true,
    WorkRetried: true,
  },
  instancesOf(event, open) {
    // Older releases held back no notification of a blocked gift, so none is due now.
    if (event.type === 'GiftUnblocked' && event.data.transaction_id === undefined) return [];
    if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return [idOf(event.stream)];
    const { entity } = event.data;
    if (parkedNameOf(event.stream) !== 'notification') return [];
    // An open first notification was never parked, and needs no resend.
    return event.type === 'WorkRetried' && open.state(notificationManager, entity) !== undefined ? [] : [entity];
  },
  react(state, event, instance, cause) {
    const transactionId = event.data.transaction_id;
    if (event.type === 'WorkParked' || transactionId === undefined) return { state: undefined, intents: [] };
    const asked = {
      transactionId,
      last: cause,
      generation: (state?.generation ?? 0) + 1,
    };
    return { state: asked, intents: resume(asked, instance) };
  },
  resume,
  done: (state, { generation }) => ({ state: generation === state.generation ? undefined : state, intents: [] }),
  parkAs: ({ instance }) => parkNotificationAs(instance),
  jobs({ instance: giftId }, open, deps) {
    const work = (): ResendWork | undefined => open.state(resendManager, giftId);
    const transactionId = work()?.transactionId;
    if (transactionId === undefined) return [];
    const memory = attemptMemory();
    const run = async (): Promise<void> => {
      for (let now = work(); now !== undefined; now = work()) if (await resend(deps, giftId, now.last, memory)) return;
    };
    return [notificationJob(giftId, { transactionId, cause: () => work()?.last, run }, open, deps)];
  },
  isSettled: (events, { entity }) => isNotified(events, entity),
  settledBefore: (events, { instance }) => isNotified(events, instance),
};
