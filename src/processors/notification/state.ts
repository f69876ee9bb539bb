/** The process of all notifications of a gift, first ones and resends (docs/api/purchases.md#notifications). Pure. */
import {
  type GiftIssued,
  type GiftReassigned,
  type GiftReleased,
  type GiftUnblocked,
  isSomebody,
  type ReminderDue,
} from '../../domain/gift/events.js';
import type {
  NotificationFailed,
  NotificationRequested,
  NotificationSent,
  ReminderSent,
} from '../../domain/notification.js';
import type { WorkParked, WorkRetried } from '../../domain/parked.js';
import type { Cause, Reaction } from '../runner/index.js';

/** Key of the gift's job: one job at a time notifies its receiver. */
export const notificationKey = (giftId: string): string => `notify/${giftId}`;

export interface NotificationWork {
  readonly transactionId: string;
  /** The last event that requested a notification. */
  readonly last: Cause;
  readonly do: NotificationIntent['do'];
}

/** `notify`: the gift's issue requested it; `resend`: another event did. */
export interface NotificationIntent {
  readonly do: 'notify' | 'resend';
  readonly instance: string;
  /** Id of the event that requested the notification. */
  readonly requestedBy: string;
}

type Answer = NotificationSent | ReminderSent | NotificationFailed;
type Request =
  GiftIssued | GiftReleased | GiftReassigned | GiftUnblocked | ReminderDue | NotificationRequested | WorkRetried;

export type NotificationTrigger = Request | Answer | WorkParked;

type NotificationReaction = Reaction<NotificationWork, NotificationIntent>;

export function reactToNotification(
  state: NotificationWork | undefined,
  event: NotificationTrigger,
  instance: string,
  cause: Cause,
): NotificationReaction {
  switch (event.type) {
    case 'WorkParked':
      return { state: undefined, intents: [] };
    case 'NotificationSent':
    case 'ReminderSent':
    case 'NotificationFailed':
      // Requests are answered in their order, so the answer to the last one leaves nothing to do.
      return { state: state?.last.id === event.data.asked_by ? undefined : state, intents: [] };
    case 'GiftIssued':
      // The release of a scheduled gift requests its notification, perhaps months later.
      if (!isSomebody(event.data.receiver) || event.data.scheduled === true) return { state, intents: [] };
      return request({ transactionId: event.data.transaction_id, last: cause, do: 'notify' }, instance);
    case 'GiftReleased':
    case 'GiftReassigned':
    case 'GiftUnblocked':
    case 'ReminderDue':
    case 'NotificationRequested':
    case 'WorkRetried':
      return request({ transactionId: event.data.transaction_id, last: cause, do: 'resend' }, instance);
    default:
      return event satisfies never;
  }
}

const request = (work: NotificationWork, instance: string): NotificationReaction => ({
  state: work,
  intents: resumeNotification(work, instance),
});

export function resumeNotification(work: NotificationWork, instance: string): readonly NotificationIntent[] {
  return [{ do: work.do, instance, requestedBy: work.last.id }];
}
