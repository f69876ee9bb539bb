/**
 * Who is to be told of a gift, and who has been: each ask (the gift's issue, a reassignment, support's request) is one attempt. Decided from the gift's
 * stream and its notification's together.
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

/** One telling. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly ask: Ask;
  readonly status: 'started' | 'sent' | 'failed';
  /** Absent where it failed before it was begun. */
  readonly channel?: Channel;
  readonly startedAt: string;
}

/** What is to be done next: find out what became of an attempt that has begun; begin one; nothing. */
export type NextTelling =
  | { readonly do: 'find out'; readonly attempt: Attempt & { readonly channel: Channel } }
  | { readonly do: 'begin'; readonly ask: Ask; readonly number: number }
  | { readonly do: 'nothing' };

/** How the telling of a gift's receiver stands. */
export interface Tellings {
  readonly next: NextTelling;
  /** Of the next attempt that somebody asks for. */
  readonly nextNumber: number;
}

/** Folds the gift's stream and its notification's, each in its own order. */
export function tellingsOf(ofGift: readonly Placed[], ofNotification: readonly Placed[]): Tellings {
  const notification = ofNotification as readonly Placed<NotificationEvent>[];
  const asks = asksOf(ofGift as readonly Placed<GiftEvent>[], notification);
  const attempts = attemptsOf(asks, notification);
  const begun = new Set(attempts.map(({ ask }) => ask.id));
  const nextNumber = attempts.length + 1;
  const open = attempts.find((attempt): attempt is Attempt & { readonly channel: Channel } => attempt.status === 'started' && attempt.channel !== undefined);
  const due = asks.find(({ id, outdated }) => !outdated && !begun.has(id));
  const next: NextTelling = open !== undefined ? { do: 'find out', attempt: open } : due !== undefined ? { do: 'begin', ask: due, number: nextNumber } : { do: 'nothing' };
  return { next, nextNumber };
}

type Given = Omit<Ask, 'outdated'> & { readonly revision: number };

/** In order of the log. */
function asksOf(gift: readonly Placed<GiftEvent>[], notification: readonly Placed<NotificationEvent>[]): Ask[] {
  const given = gift.flatMap((event): Given[] => {
    const { id, position, revision } = event;
    if (event.type === 'GiftIssued') return isSomebody(event.data.receiver) ? [{ id, position, revision, receiver: 'bought' }] : [];
    if (event.type !== 'GiftReassigned') return [];
    const { receiver, phone_number } = event.data;
    return [{ id, position, revision, receiver: phone_number === null ? receiver : { ...receiver, phone_number } }];
  });
  const latest = given.at(-1);
  const requested = notification.flatMap((event): Ask[] => {
    if (event.type !== 'NotificationRequested') return [];
    const { id, position, data: { gift_revision } } = event;
    // Whose telling was asked for is what was decided on: a reassignment may have come in between, and asks for itself.
    const to = given.findLast((one) => (gift_revision === undefined ? one.position < position : one.revision <= gift_revision));
    return to === undefined ? [] : [{ id, position, receiver: to.receiver, outdated: to !== latest }];
  });
  const own = given.map(({ id, position, receiver }, index): Ask => ({ id, position, receiver, outdated: index < given.length - 1 }));
  return [...own, ...requested].sort((one, other) => (one.position < other.position ? -1 : 1));
}

function attemptsOf(asks: readonly Ask[], notification: readonly Placed<NotificationEvent>[]): Attempt[] {
  const attempts = new Map<number, Attempt>();
  const first = asks[0];
  for (const event of notification) {
    if (event.type === 'NotificationRequested' || event.type === 'NotificationUndelivered') continue;
    const { attempt: number = 1, asked_by } = event.data;
    const before = attempts.get(number);
    if (before !== undefined) {
      if (event.type !== 'NotificationStarted') attempts.set(number, { ...before, status: event.type === 'NotificationSent' ? 'sent' : 'failed' });
      continue;
    }
    const ask = asked_by === undefined ? first : asks.find(({ id }) => id === asked_by);
    if (ask === undefined) continue;
    if (event.type === 'NotificationStarted') attempts.set(number, { number, ask, status: 'started', channel: event.data.channel, startedAt: event.at });
    else attempts.set(number, { number, ask, status: event.type === 'NotificationSent' ? 'sent' : 'failed', startedAt: event.at });
  }
  return [...attempts.values()];
}
