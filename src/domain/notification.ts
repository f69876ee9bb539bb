/** Who is notified of one gift, and what became of it. Stream `notification-{giftId}`. */
import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { type GiftEvent, isSomebody } from './gift/events.js';
import type { PurchaseReceiver } from './purchase/events.js';

export const notificationStream = (giftId: string): string => `notification-${giftId}`;

// Events

export type Channel = 'sms' | 'push';

/** Which notification of the receiver it is. */
interface Numbered {
  /** From 1; absent: 1. */
  readonly attempt?: number;
  /** The event that asked for it: a reassignment or a request; absent: the gift's issue. */
  readonly asked_by?: string;
}

/** Only the process that wrote this sends. */
export type NotificationStarted = DomainEvent<
  'NotificationStarted',
  Numbered & {
    readonly transaction_id: string;
    readonly channel: Channel;
  }
>;

/** The provider took the message. `message_id` is the provider's. */
export type NotificationSent = DomainEvent<
  'NotificationSent',
  Numbered & {
    readonly channel: Channel;
    readonly provider: string;
    readonly message_id: string;
  }
>;

/** The receiver can't be notified: `no address`, or the provider's reason. */
export type NotificationFailed = DomainEvent<
  'NotificationFailed',
  Numbered & {
    readonly cause: string;
  }
>;

/**
 * The provider took the message and could not deliver it. `message_id` is that of its `NotificationSent`, `cause` the
 * provider's reason.
 */
export type NotificationUndelivered = DomainEvent<
  'NotificationUndelivered',
  {
    readonly provider: string;
    readonly message_id: string;
    readonly cause: string;
  }
>;

/**
 * Support wants the receiver notified once more. `attempt`: the one that this asks for. `gift_revision`: the last event
 * of the gift's stream that this was decided on, and so the receiver that is meant.
 */
export type NotificationRequested = DomainEvent<
  'NotificationRequested',
  {
    readonly transaction_id: string;
    readonly attempt: number;
    readonly gift_revision: number;
    readonly reason: string;
  }
>;

export type NotificationEvent =
  NotificationStarted | NotificationSent | NotificationFailed | NotificationUndelivered | NotificationRequested;

// State

export type Notification =
  | { readonly status: 'none' }
  | { readonly status: 'started'; readonly channel: Channel; readonly startedAt: string }
  | { readonly status: 'sent' | 'failed' };

/** Which attempt an event moves; 0: none. */
export function attemptOf(event: NotificationEvent): number {
  return event.type === 'NotificationRequested' || event.type === 'NotificationUndelivered'
    ? 0
    : (event.data.attempt ?? 1);
}

/** The fold of the first notification; `notificationAttempts` knows of further ones. */
export const notificationAggregate: Aggregate<Notification, NotificationEvent> = {
  initial: { status: 'none' },
  evolve(state: Notification, event: Happened<NotificationEvent>): Notification {
    if (attemptOf(event) !== 1) return state;
    switch (event.type) {
      case 'NotificationStarted':
        return { status: 'started', channel: event.data.channel, startedAt: event.at };
      case 'NotificationSent':
        return { status: 'sent' };
      case 'NotificationFailed':
        return { status: 'failed' };
      case 'NotificationUndelivered':
      case 'NotificationRequested':
        return state;
      default:
        return (event satisfies never, state);
    }
  },
};

/** An event with its place in the log. */
export type Placed<E extends DomainEvent = DomainEvent> = Happened<E> & {
  readonly id: string;
  readonly position: string;
  readonly revision: number;
};

/** Why a receiver is notified: the gift's issue, a reassignment, or a request of support. */
export interface Occasion {
  /** The id of its event. */
  readonly id: string;
  readonly position: string;
  /** Who is notified; `bought`: the receiver that the purchase names. Personal: `phone_number`. */
  readonly receiver: PurchaseReceiver | 'bought';
  /** The gift has gone to another receiver since. */
  readonly outdated: boolean;
}

/** A notification that was started and has no end yet. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly occasion: Occasion;
  readonly channel: Channel;
  readonly startedAt: string;
}

/** What is to be done next: find out what became of an attempt that was started; start one; nothing. */
export type NextAttempt =
  | { readonly do: 'find out'; readonly attempt: Attempt }
  | { readonly do: 'start'; readonly occasion: Occasion; readonly number: number }
  | { readonly do: 'nothing' };

/** How the notifications of a gift's receivers stand. */
export interface NotificationAttempts {
  readonly next: NextAttempt;
  /** Of the next attempt that is requested. */
  readonly nextNumber: number;
}

/** Folds the gift's stream and its notification's, each in its own order. */
export function notificationAttempts(
  ofGift: readonly Placed[],
  ofNotification: readonly Placed[],
): NotificationAttempts {
  const notification = ofNotification as readonly Placed<NotificationEvent>[];
  const occasions = occasionsOf(ofGift as readonly Placed<GiftEvent>[], notification);
  const attempts = [...attemptsOf(occasions, notification).values()];
  const answered = new Set(attempts.map(({ occasion }) => occasion.id));
  const nextNumber = attempts.length + 1;
  const open = attempts.find(({ attempt }) => attempt !== undefined)?.attempt;
  const due = occasions.find(({ id, outdated }) => !outdated && !answered.has(id));
  const next: NextAttempt =
    open !== undefined
      ? { do: 'find out', attempt: open }
      : due !== undefined
        ? { do: 'start', occasion: due, number: nextNumber }
        : { do: 'nothing' };
  return { next, nextNumber };
}

/** In order of the log. */
function occasionsOf(
  gift: readonly Placed<GiftEvent>[],
  notification: readonly Placed<NotificationEvent>[],
): Occasion[] {
  const given = gift.flatMap((event): (Omit<Occasion, 'outdated'> & { readonly revision: number })[] => {
    const { id, position, revision } = event;
    if (event.type === 'GiftIssued')
      return isSomebody(event.data.receiver) ? [{ id, position, revision, receiver: 'bought' }] : [];
    if (event.type !== 'GiftReassigned') return [];
    const { receiver, phone_number } = event.data;
    return [{ id, position, revision, receiver: phone_number === null ? receiver : { ...receiver, phone_number } }];
  });
  const latest = given.at(-1);
  const requested = notification.flatMap((event): Occasion[] => {
    if (event.type !== 'NotificationRequested') return [];
    const { id, position, data } = event;
    // A reassignment since the decision is an occasion of its own.
    const to = given.findLast((one) => one.revision <= data.gift_revision);
    return to === undefined ? [] : [{ id, position, receiver: to.receiver, outdated: to !== latest }];
  });
  const own = given.map(({ id, position, receiver }, index): Occasion => ({
    id,
    position,
    receiver,
    outdated: index < given.length - 1,
  }));
  return [...own, ...requested].sort((one, other) => (one.position < other.position ? -1 : 1));
}

/** By number; `attempt` while it has no end. */
function attemptsOf(
  occasions: readonly Occasion[],
  notification: readonly Placed<NotificationEvent>[],
): Map<number, { readonly occasion: Occasion; readonly attempt?: Attempt }> {
  const attempts = new Map<number, { readonly occasion: Occasion; readonly attempt?: Attempt }>();
  for (const event of notification) {
    if (event.type === 'NotificationRequested' || event.type === 'NotificationUndelivered') continue;
    const { attempt: number = 1, asked_by } = event.data;
    const occasion = asked_by === undefined ? occasions[0] : occasions.find(({ id }) => id === asked_by);
    if (occasion === undefined) continue;
    attempts.set(
      number,
      event.type === 'NotificationStarted'
        ? { occasion, attempt: { number, occasion, channel: event.data.channel, startedAt: event.at } }
        : { occasion },
    );
  }
  return attempts;
}

// Decisions

/** A message could not be delivered: recorded once, after it was sent. `undefined`: it is not recorded as sent (yet). */
export function failDelivery(
  history: readonly NotificationEvent[],
  failed: NotificationUndelivered['data'],
): NotificationUndelivered[] | undefined {
  const about = history.filter((event) => 'message_id' in event.data && event.data.message_id === failed.message_id);
  if (!about.some(({ type }) => type === 'NotificationSent')) return undefined;
  return about.some(({ type }) => type === 'NotificationUndelivered')
    ? []
    : [{ type: 'NotificationUndelivered', data: failed }];
}

/** Fails an attempt (from 1) whose message could not be delivered: no event where it is not started or has an end. */
export function failAttempt(
  history: readonly NotificationEvent[],
  number: number,
  cause: string,
): NotificationFailed[] {
  const last = history.findLast((event) => attemptOf(event) === number);
  if (last?.type !== 'NotificationStarted') return [];
  const { attempt, asked_by } = last.data;
  return [
    {
      type: 'NotificationFailed',
      data: { cause, ...(attempt === undefined ? {} : { attempt }), ...(asked_by === undefined ? {} : { asked_by }) },
    },
  ];
}
