/** The process of first notifications (docs/api/purchases.md#notifications). Pure. */
import { type GiftIssued, isSomebody } from '../../domain/gift/events.js';
import type { NotificationFailed, NotificationSent, NotificationStarted } from '../../domain/notification.js';
import type { WorkParked } from '../../domain/parked.js';
import type { Cause, Reaction } from '../runner/index.js';

/** A first notification. `due`: it has not started; `started`: it has no answer yet. */
export interface NotificationWork {
  readonly stage: 'due' | 'started';
  readonly transactionId: string;
  /** Index of the gift in its purchase. */
  readonly index: number;
  /** The event of the gift's issue, or of the notification's start. */
  readonly last: Cause;
}

/** `notify`: notify the receiver; `find out`: look the attempt up first, and notify only if nothing was sent. */
export interface NotificationIntent {
  readonly do: 'notify' | 'find out';
  readonly instance: string;
}

export type NotificationTrigger = GiftIssued | NotificationStarted | NotificationSent | NotificationFailed | WorkParked;

type NotificationReaction = Reaction<NotificationWork, NotificationIntent>;

const NOTHING: NotificationReaction = { state: undefined, intents: [] };

export function reactToNotification(
  state: NotificationWork | undefined,
  event: NotificationTrigger,
  instance: string,
  cause: Cause,
): NotificationReaction {
  switch (event.type) {
    case 'GiftIssued': {
      const { receiver, transaction_id, index, scheduled } = event.data;
      // The release of a scheduled gift requests its notification, perhaps months later.
      if (!isSomebody(receiver) || scheduled === true) return NOTHING;
      const due: NotificationWork = {
        stage: 'due',
        transactionId: transaction_id,
        index,
        last: cause,
      };
      return { state: due, intents: resumeNotification(due, instance) };
    }
    case 'NotificationStarted':
      // The process that appended this event sends the message; another one only after a takeover.
      return state === undefined ? NOTHING : { state: { ...state, stage: 'started', last: cause }, intents: [] };
    case 'NotificationSent':
    case 'NotificationFailed':
    case 'WorkParked':
      return NOTHING;
    default:
      return (event satisfies never, NOTHING);
  }
}

export function resumeNotification(work: NotificationWork, instance: string): readonly NotificationIntent[] {
  return [{ do: work.stage === 'due' ? 'notify' : 'find out', instance }];
}
