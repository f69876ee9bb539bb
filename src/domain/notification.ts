/** What became of telling one gift's receiver. Stream `notification-{giftId}`. */
import type { Aggregate, DomainEvent, Happened } from './decider.js';

/** The stream of a gift's notification. */
export const notificationStream = (giftId: string): string => `notification-${giftId}`;

/** How a receiver is told. */
export type Channel = 'sms' | 'push';

/** Which telling of the receiver it is. */
interface Attempted {
  /** From 1; absent: 1. */
  readonly attempt?: number;
  /** The event that asked for this attempt: a reassignment or a request; absent: the gift's issue. */
  readonly asked_by?: string;
}

/** Only who wrote this sends (the first: expected no stream). */
export type NotificationStarted = DomainEvent<
  'NotificationStarted',
  Attempted & {
    readonly transaction_id: string;
    readonly channel: Channel;
  }
>;

/** The provider took it. `message_id` is the provider's. */
export type NotificationSent = DomainEvent<
  'NotificationSent',
  Attempted & {
    readonly channel: Channel;
    readonly provider: string;
    readonly message_id: string;
  }
>;

/** It can't be told: `no address`, or the provider's reason. */
export type NotificationFailed = DomainEvent<
  'NotificationFailed',
  Attempted & {
    readonly cause: string;
  }
>;

/**
 * The provider took it and told later that it could not be delivered. `message_id` is that of its `NotificationSent`,
 * `cause` the provider's reason.
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
 * Support wants the receiver told again, once more for each of these. `attempt`: the one that this asks for.
 * `gift_revision`: of the last event of the gift's stream that this was decided on, so of the receiver that is meant;
 * absent in events from before it was kept.
 */
export type NotificationRequested = DomainEvent<
  'NotificationRequested',
  {
    readonly transaction_id: string;
    readonly attempt: number;
    readonly gift_revision?: number;
    readonly reason: string;
  }
>;

/** Events of a notification's stream. */
export type NotificationEvent =
  NotificationStarted | NotificationSent | NotificationFailed | NotificationUndelivered | NotificationRequested;

/** What is known of the first telling. */
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

/** The fold of the first telling; `notificationAttempts.ts` knows of further ones. */
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

/**
 * A message could not be delivered: noted once, after it was noted as sent. `undefined`: it has not been noted as sent
 * (yet).
 */
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

/**
 * A telling whose message could not be delivered has failed, whoever hears of it: no event where it was not begun, or
 * its end is noted. `number`: which telling, from 1.
 */
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
