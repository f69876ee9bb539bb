/** What became of telling one gift's receiver. Stream `notification-{giftId}`. */
import type { Aggregate, DomainEvent, Happened } from './decider.js';

/** The stream of a gift's notification. */
export const notificationStream = (giftId: string): string => `notification-${giftId}`;

/** How a receiver is told. */
export type Channel = 'sms' | 'push';

/** Only who wrote this sends (expected: no stream). */
export type NotificationStarted = DomainEvent<'NotificationStarted', {
  readonly transaction_id: string;
  readonly channel: Channel;
}>;

/** The provider took it. `message_id` is the provider's. */
export type NotificationSent = DomainEvent<'NotificationSent', {
  readonly channel: Channel;
  readonly provider: string;
  readonly message_id: string;
}>;

/** It can't be told: `no address`, or the provider's reason. */
export type NotificationFailed = DomainEvent<'NotificationFailed', {
  readonly cause: string;
}>;

/** The provider took it and told later that it could not be delivered. `message_id` is that of its `NotificationSent`, `cause` the provider's reason. */
export type NotificationUndelivered = DomainEvent<'NotificationUndelivered', {
  readonly provider: string;
  readonly message_id: string;
  readonly cause: string;
}>;

/** Events of a notification's stream. */
export type NotificationEvent = NotificationStarted | NotificationSent | NotificationFailed | NotificationUndelivered;

/** What is known of it. */
export type Notification =
  | { readonly status: 'none' }
  | { readonly status: 'started'; readonly channel: Channel; readonly startedAt: string }
  | { readonly status: 'sent' | 'failed' };

/** The fold. */
export const notificationAggregate: Aggregate<Notification, NotificationEvent> = {
  initial: { status: 'none' },
  evolve(state: Notification, event: Happened<NotificationEvent>): Notification {
    switch (event.type) {
      case 'NotificationStarted':
        return { status: 'started', channel: event.data.channel, startedAt: event.at };
      case 'NotificationSent':
        return { status: 'sent' };
      case 'NotificationFailed':
        return { status: 'failed' };
      case 'NotificationUndelivered':
        return state;
      default:
        return event satisfies never, state;
    }
  },
};

/**
 * A message could not be delivered: noted once, after it was noted as sent. `undefined`: it has not been noted as sent (yet).
 */
export function failDelivery(history: readonly NotificationEvent[], failed: NotificationUndelivered['data']): NotificationUndelivered[] | undefined {
  const about = history.filter((event) => 'message_id' in event.data && event.data.message_id === failed.message_id);
  if (!about.some(({ type }) => type === 'NotificationSent')) return undefined;
  return about.some(({ type }) => type === 'NotificationUndelivered') ? [] : [{ type: 'NotificationUndelivered', data: failed }];
}
