/** Notifications of one gift's receivers. Stream `notification-{giftId}`. */
import { type DomainEvent, fold, type Happened } from './decider.js';
import { isBlocked } from './gift/decisions.js';
import { type GiftEvent, isSomebody, type Receiver, type ReminderDue } from './gift/events.js';
import { giftAggregate } from './gift/state.js';
import { POSTPONED } from './whyNotNotified.js';

export const notificationStream = (giftId: string): string => `notification-${giftId}`;

// Events

export type Channel = 'sms' | 'push';

interface Numbered {
  /** Number of the attempt among all notifications of the gift, counted from 1. */
  readonly attempt: number;
  /**
   * Id of the event that caused the notification: the gift's issue or release, a reassignment, a request or a reminder.
   */
  readonly asked_by: string;
}

/** Only the process that appended this event sends the message. */
export type NotificationStarted = DomainEvent<
  'NotificationStarted',
  Numbered & {
    readonly transaction_id: string;
    readonly channel: Channel;
  }
>;

/** `message_id`: the provider's id of the message. */
export type NotificationSent = DomainEvent<
  'NotificationSent',
  Numbered & {
    readonly channel: Channel;
    readonly provider: string;
    readonly message_id: string;
  }
>;

/** A reminder was sent; the fields are those of `NotificationSent`. */
export type ReminderSent = DomainEvent<'ReminderSent', NotificationSent['data']>;

/** `cause` is `no address`, the provider's reason, or why no receiver is notified any more (`whyNotNotified`). */
export type NotificationFailed = DomainEvent<
  'NotificationFailed',
  Numbered & {
    readonly cause: string;
  }
>;

/** The provider could not deliver a message that was recorded as sent. `cause`: the provider's reason. */
export type NotificationUndelivered = DomainEvent<
  'NotificationUndelivered',
  {
    readonly provider: string;
    readonly message_id: string;
    readonly cause: string;
  }
>;

/**
 * Support requests another notification of the receiver, with the number `attempt`. `gift_revision`: revision of the
 * last event in the gift's stream at the decision, which determines the receiver.
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
  | NotificationStarted
  | NotificationSent
  | ReminderSent
  | NotificationFailed
  | NotificationUndelivered
  | NotificationRequested;

// State

export type Placed<E extends DomainEvent = DomainEvent> = Happened<E> & {
  readonly id: string;
  readonly position: string;
  readonly revision: number;
};

/**
 * An event that causes a notification: the gift's issue or release, a reassignment, support's request, or a reminder.
 */
export interface Occasion {
  readonly id: string;
  readonly position: string;
  readonly receiver: Receiver;
  readonly outdated: boolean;
  /** Set while a block of the gift holds the notification back: no attempt starts until the block ends. */
  readonly waits?: true;
  readonly reminder?: Pick<ReminderDue['data'], 'expires_on' | 'until'>;
}

/** A notification without an outcome yet. */
export interface Attempt {
  /** Number of the attempt among all notifications of the gift, counted from 1. */
  readonly number: number;
  readonly occasion: Occasion;
  readonly channel: Channel;
  readonly startedAt: string;
}

/** `find out`: an attempt was started, and its outcome is unknown. */
type NextAttempt =
  | { readonly do: 'find out'; readonly attempt: Attempt }
  | { readonly do: 'start'; readonly occasion: Occasion; readonly number: number }
  | { readonly do: 'nothing' };

export interface NotificationAttempts {
  readonly next: NextAttempt;
  /** Number of the attempt that support's next request gets. */
  readonly nextNumber: number;
}

/** Each argument holds the events of its stream, in order. */
export function notificationAttempts(
  ofGift: readonly Placed[],
  ofNotification: readonly Placed[],
): NotificationAttempts {
  const notification = ofNotification as readonly Placed<NotificationEvent>[];
  const occasions = occasionsOf(ofGift as readonly Placed<GiftEvent>[], notification);
  const attempts = [...attemptsOf(occasions, notification).values()];
  const answered = new Set(attempts.filter(({ blocked }) => blocked !== true).map(({ occasion }) => occasion.id));
  const nextNumber = attempts.length + 1;
  const open = attempts.find(({ attempt }) => attempt !== undefined)?.attempt;
  const due = occasions.find(({ id, outdated, waits }) => !outdated && waits !== true && !answered.has(id));
  const next: NextAttempt =
    open !== undefined
      ? { do: 'find out', attempt: open }
      : due !== undefined
        ? { do: 'start', occasion: due, number: nextNumber }
        : { do: 'nothing' };
  return { next, nextNumber };
}

/** Types of events after which an earlier reminder is no longer sent. */
const ENDS_REMINDERS: ReadonlySet<GiftEvent['type']> = new Set([
  'GiftReassigned',
  'GiftRedeemed',
  'GiftReplaced',
  'GiftCancelled',
  'GiftBlocked',
  'GiftExtended',
]);

/** The events that cause notifications of a gift, in the order of the log. */
function occasionsOf(
  gift: readonly Placed<GiftEvent>[],
  notification: readonly Placed<NotificationEvent>[],
): Occasion[] {
  let receiver: Receiver | undefined;
  // Events before a scheduled gift's release cause no notification of their own: the release notifies the receiver.
  let heldBack = false;
  const given = gift.flatMap(
    (event): (Omit<Occasion, 'outdated'> & { readonly revision: number; readonly by: string })[] => {
      const { id, position, revision } = event;
      if (event.type === 'GiftIssued') {
        receiver = isSomebody(event.data.receiver) ? event.data.receiver : undefined;
        heldBack = event.data.scheduled === true;
      } else if (event.type === 'GiftReassigned') receiver = event.data.receiver;
      else if (event.type === 'GiftReleased') heldBack = false;
      else return [];
      return heldBack || receiver === undefined ? [] : [{ id, position, revision, receiver, by: event.type }];
    },
  );
  const latest = given.at(-1);
  const state = fold(giftAggregate, gift);
  const blocked = state.status !== 'none' && isBlocked(state);
  const blockedBefore = new Set(notification.filter(isForBlock).map(({ data }) => data.asked_by));
  const requested = notification.flatMap((event): Occasion[] => {
    if (event.type !== 'NotificationRequested') return [];
    const { id, position, data } = event;
    // A later reassignment causes a notification of its own.
    const to = given.findLast((one) => one.revision <= data.gift_revision);
    const waits = blocked && blockedBefore.has(id);
    return to === undefined
      ? []
      : [{ id, position, receiver: to.receiver, outdated: to !== latest, ...(waits ? { waits } : {}) }];
  });
  const own = given.map(({ id, by, position, receiver: to }, index): Occasion => ({
    id,
    position,
    receiver: to,
    outdated: index < given.length - 1,
    // A first notification waits only once its failure for the block is in the log: nothing else ends it.
    ...(blocked && (by !== 'GiftIssued' || blockedBefore.has(id)) ? { waits: true } : {}),
  }));
  return [...own, ...requested, ...remindersOf(gift)].sort((one, other) => (one.position < other.position ? -1 : 1));
}

function remindersOf(gift: readonly Placed<GiftEvent>[]): Occasion[] {
  let holder: Receiver | undefined;
  return gift.flatMap((event, index): Occasion[] => {
    const { id, position } = event;
    if (event.type === 'GiftIssued') holder = isSomebody(event.data.receiver) ? event.data.receiver : undefined;
    else if (event.type === 'GiftReassigned') holder = event.data.receiver;
    else if (event.type === 'GiftClaimed') holder = { user_id: event.data.user_id };
    if (event.type !== 'ReminderDue' || holder === undefined) return [];
    const outdated = gift.slice(index + 1).some(({ type }) => ENDS_REMINDERS.has(type));
    const { expires_on, until } = event.data;
    return [{ id, position, receiver: holder, outdated, reminder: { expires_on, until } }];
  });
}

/**
 * `attempt`: absent once the outcome is recorded. `blocked`: nothing was sent because of a block, and the occasion
 * remains open.
 */
interface Attempted {
  readonly occasion: Occasion;
  readonly attempt?: Attempt;
  readonly blocked?: boolean;
}

/** Attempts by their number. */
function attemptsOf(
  occasions: readonly Occasion[],
  notification: readonly Placed<NotificationEvent>[],
): Map<number, Attempted> {
  const attempts = new Map<number, Attempted>();
  for (const event of notification) {
    if (event.type === 'NotificationRequested' || event.type === 'NotificationUndelivered') continue;
    const { attempt: number, asked_by } = event.data;
    const occasion = occasions.find(({ id }) => id === asked_by);
    if (occasion === undefined) continue;
    attempts.set(
      number,
      event.type === 'NotificationStarted'
        ? { occasion, attempt: { number, occasion, channel: event.data.channel, startedAt: event.at } }
        : { occasion, blocked: isForBlock(event) },
    );
  }
  return attempts;
}

const isForBlock = <E extends NotificationEvent>(event: E): event is E & NotificationFailed =>
  event.type === 'NotificationFailed' && event.data.cause === POSTPONED;

// Decisions

/** Records once that a message could not be delivered. `undefined`: the message is not recorded as sent (yet). */
export function failDelivery(
  history: readonly NotificationEvent[],
  failed: NotificationUndelivered['data'],
): NotificationUndelivered[] | undefined {
  const about = history.filter((event) => 'message_id' in event.data && event.data.message_id === failed.message_id);
  if (about.length === 0) return undefined;
  return about.some(({ type }) => type === 'NotificationUndelivered')
    ? []
    : [{ type: 'NotificationUndelivered', data: failed }];
}

/** Fails the attempt with this number (from 1) where it is in progress; no event otherwise. */
export function failAttempt(
  history: readonly NotificationEvent[],
  number: number,
  cause: string,
): NotificationFailed[] {
  const last = history.findLast(({ data }) => 'attempt' in data && data.attempt === number);
  if (last?.type !== 'NotificationStarted') return [];
  const { attempt, asked_by } = last.data;
  return [{ type: 'NotificationFailed', data: { cause, attempt, asked_by } }];
}
