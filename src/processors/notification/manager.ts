/**
 * The notification process: tell the receiver of each issued gift, once (decisions 3). Pure: events come in, what to do
 * comes out.
 */
import { type GiftIssued, isSomebody } from '../../domain/gift.js';
import type { Channel, NotificationFailed, NotificationSent, NotificationStarted } from '../../domain/notification.js';
import type { WorkParked } from '../../domain/parked.js';
import type { PurchaseReceiver } from '../../domain/purchase.js';
import type { Cause } from '../runner/cause.js';

/** A receiver to be told. `due`: nobody has begun; `started`: somebody has, without an answer. */
export interface NotificationWork {
  readonly stage: 'due' | 'started';
  readonly transactionId: string;
  /** The gift's place in the purchase. */
  readonly index: number;
  /** The gift can't be used any more: nobody is to be told of it who has not been. */
  readonly cancelled?: true;
  /**
   * The gift was issued in one append with something else, which may be its cancellation and come later in the feed:
   * its stream is read before anybody is told.
   */
  readonly together?: true;
  /** The gift's issue, or the start of telling. */
  readonly last: Cause;
}

/**
 * What is to be done for a receiver: tell them; find out what became of it, and then tell them only if nobody has; go
 * on with either, for what it waited for has come.
 */
export type NotificationIntent = { readonly do: 'tell' | 'find out' | 'go on telling'; readonly giftId: string };

/** The events that move it. */
export type NotificationTrigger = GiftIssued | NotificationStarted | NotificationSent | NotificationFailed | WorkParked;

/** It after one more event; `work` undefined: there is nothing left to do. */
export interface NotificationReaction {
  readonly work: NotificationWork | undefined;
  readonly intents: readonly NotificationIntent[];
}

const NOTHING: NotificationReaction = { work: undefined, intents: [] };

/** The reaction. An event of a gift whose receiver is not to be told changes nothing. */
export function reactToNotification(
  work: NotificationWork | undefined,
  event: NotificationTrigger,
  giftId: string,
  cause: Cause,
): NotificationReaction {
  switch (event.type) {
    case 'GiftIssued': {
      const { receiver, transaction_id, index } = event.data;
      if (!isSomebody(receiver)) return NOTHING;
      const due: NotificationWork = { stage: 'due', transactionId: transaction_id, index, last: cause };
      return { work: due, intents: resumeNotification(due, giftId) };
    }
    case 'NotificationStarted':
      // Who wrote it sends; another one takes it up only when it resumes.
      return { work: work === undefined ? undefined : { ...work, stage: 'started', last: cause }, intents: [] };
    case 'NotificationSent':
    case 'NotificationFailed':
    case 'WorkParked':
      return NOTHING;
    default:
      return (event satisfies never, NOTHING);
  }
}

/** What to do for a receiver as things stand, by who takes it up anew. */
export function resumeNotification(work: NotificationWork, giftId: string): readonly NotificationIntent[] {
  return [{ do: work.stage === 'due' ? 'tell' : 'find out', giftId }];
}

/** How a user can be reached. Personal. */
export interface Contact {
  readonly name: string;
  readonly phone_number: string | null;
  readonly device_tokens: readonly string[];
  readonly locale: string | null;
}

/** Where a message goes. */
export interface Address {
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly locale: string | null;
}

/**
 * Where a receiver is told: a phone number by SMS; a user by push where they have device tokens, else by SMS where they
 * have a number; else nowhere. `contact`: the user's, where the receiver is a user.
 */
export function addressOf(receiver: PurchaseReceiver, contact: Contact | undefined): Address | undefined {
  if (receiver.phone_number !== undefined) return { channel: 'sms', to: [receiver.phone_number], locale: null };
  if (contact === undefined) return undefined;
  const { phone_number, device_tokens, locale } = contact;
  if (device_tokens.length > 0) return { channel: 'push', to: device_tokens, locale };
  return phone_number === null ? undefined : { channel: 'sms', to: [phone_number], locale };
}
