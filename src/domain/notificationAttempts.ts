/**
 * Who is to be told of a gift, and who has been: each ask (the gift's issue, a reassignment, support's request) is one
 * attempt. Decided from the gift's stream and its notification's together.
 */
import type { DomainEvent, Happened } from './decider.js';
import { type GiftEvent, isSomebody } from './gift.js';
import type { Channel, NotificationEvent } from './notification.js';
import type { PurchaseReceiver } from './purchase.js';

/** An event with its place in the log. */
export type Placed<E extends DomainEvent = DomainEvent> = Happened<E> & {
  readonly id: string;
  readonly position: string;
  readonly revision: number;
};

/** Somebody is to be told. */
export interface Ask {
  /** The event that asks. */
  readonly id: string;
  readonly position: string;
  /** Who is told; `bought`: the receiver that the purchase names. Personal: `phone_number`. */
  readonly receiver: PurchaseReceiver | 'bought';
  /** The gift has gone to another receiver since. */
  readonly outdated: boolean;
}

/** A telling that was begun and has no end yet. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly ask: Ask;
  readonly channel: Channel;
  readonly startedAt: string;
}

/** What is to be done next: find out what became of an attempt that has begun; begin one; nothing. */
export type NextAttempt =
  | { readonly do: 'find out'; readonly attempt: Attempt }
  | { readonly do: 'start'; readonly ask: Ask; readonly number: number }
  | { readonly do: 'nothing' };

/** How the telling of a gift's receiver stands. */
export interface NotificationAttempts {
  readonly next: NextAttempt;
  /** Of the next attempt that somebody asks for. */
  readonly nextNumber: number;
}

/** Folds the gift's stream and its notification's, each in its own order. */
export function notificationAttempts(
  ofGift: readonly Placed[],
  ofNotification: readonly Placed[],
): NotificationAttempts {
  const notification = ofNotification as readonly Placed<NotificationEvent>[];
  const asks = asksOf(ofGift as readonly Placed<GiftEvent>[], notification);
  const tellings = [...answersTo(asks, notification).values()];
  const begun = new Set(tellings.map(({ ask }) => ask.id));
  const nextNumber = tellings.length + 1;
  const open = tellings.find(({ attempt }) => attempt !== undefined)?.attempt;
  const due = asks.find(({ id, outdated }) => !outdated && !begun.has(id));
  const next: NextAttempt =
    open !== undefined
      ? { do: 'find out', attempt: open }
      : due !== undefined
        ? { do: 'start', ask: due, number: nextNumber }
        : { do: 'nothing' };
  return { next, nextNumber };
}

type Given = Omit<Ask, 'outdated'> & { readonly revision: number };

/** In order of the log. */
function asksOf(gift: readonly Placed<GiftEvent>[], notification: readonly Placed<NotificationEvent>[]): Ask[] {
  const given = gift.flatMap((event): Given[] => {
    const { id, position, revision } = event;
    if (event.type === 'GiftIssued')
      return isSomebody(event.data.receiver) ? [{ id, position, revision, receiver: 'bought' }] : [];
    if (event.type !== 'GiftReassigned') return [];
    const { receiver, phone_number } = event.data;
    return [{ id, position, revision, receiver: phone_number === null ? receiver : { ...receiver, phone_number } }];
  });
  const latest = given.at(-1);
  const requested = notification.flatMap((event): Ask[] => {
    if (event.type !== 'NotificationRequested') return [];
    const {
      id,
      position,
      data: { gift_revision },
    } = event;
    // Whose telling was asked for is what was decided on: a reassignment may have come in between, and asks for itself.
    const to = given.findLast((one) =>
      gift_revision === undefined ? one.position < position : one.revision <= gift_revision,
    );
    return to === undefined ? [] : [{ id, position, receiver: to.receiver, outdated: to !== latest }];
  });
  const own = given.map(({ id, position, receiver }, index): Ask => ({
    id,
    position,
    receiver,
    outdated: index < given.length - 1,
  }));
  return [...own, ...requested].sort((one, other) => (one.position < other.position ? -1 : 1));
}

/** What a telling answers; without its attempt once it is over. */
interface Answer {
  readonly ask: Ask;
  readonly attempt?: Attempt;
}

/** By number. */
function answersTo(asks: readonly Ask[], notification: readonly Placed<NotificationEvent>[]): Map<number, Answer> {
  const tellings = new Map<number, Answer>();
  for (const event of notification) {
    if (event.type === 'NotificationRequested' || event.type === 'NotificationUndelivered') continue;
    const { attempt: number = 1, asked_by } = event.data;
    const ask = asked_by === undefined ? asks[0] : asks.find(({ id }) => id === asked_by);
    if (ask === undefined) continue;
    tellings.set(
      number,
      event.type === 'NotificationStarted'
        ? { ask, attempt: { number, ask, channel: event.data.channel, startedAt: event.at } }
        : { ask },
    );
  }
  return tellings;
}
