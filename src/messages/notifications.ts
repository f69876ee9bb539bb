import type { Channel } from '../domain/notification.js';
import { attempt, id, object, text, workerRequest, yes } from './workerRequest.js';

/**
 * A notification, sent at most once for this gift and attempt. Personal: `to` (a phone number in E.164, or device
 * tokens), `message`, `sender_name`. `locale` null: English.
 */
export interface SendRequest {
  readonly gift_id: string;
  /**
   * Number of the attempt, counted from 1, the default. A further attempt is deliberate, and its `launch_url` differs.
   */
  readonly attempt?: number;
  /** Id of the purchase, all of whose notifications together count once against a limit. */
  readonly transaction_id: string;
  readonly buyer_id: string;
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly sender_name: string;
  readonly product_name: string;
  readonly message: string;
  readonly launch_url: string;
  readonly locale: string | null;
  /** Last valid day of the gift (UTC); present only in a reminder. */
  readonly expires_on?: string;
  /** Time after which a reminder must no longer arrive (ISO 8601, UTC), also at a device that is off until then. */
  readonly until?: string;
}

/** Seconds for which a provider may keep a message for its device; `undefined`: as long as it keeps messages. */
export function secondsLeft({ until }: Pick<SendRequest, 'until'>, now: number): number | undefined {
  return until === undefined ? undefined : Math.max(0, Math.floor((Date.parse(until) - now) / 1_000));
}

/** Final outcome: the provider accepted the message, or never will. */
export type SendReply =
  | { readonly outcome: 'sent'; readonly provider: string; readonly message_id: string; readonly simulated: boolean }
  | { readonly outcome: 'failed'; readonly cause: string; readonly simulated: boolean };

/**
 * `started_at` (ISO 8601, UTC): the message can't have been sent before this time. Personal: `to`, the receiver's
 * present address (empty: none). `stopped`: why the message is not to be sent any more. After the answer `never` a request
 * to send it that is still under way, such as one of a process that was killed, then sends nothing.
 */
export interface SendLookup {
  readonly gift_id: string;
  readonly attempt?: number;
  readonly started_at: string;
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly launch_url: string;
  readonly stopped?: string;
}

/** `never`: no worker has tried to send the message, so sending it is safe; `unknown`: it may have been sent. */
export type SendLookupReply = SendReply | { readonly outcome: 'never' | 'unknown' };

export function notificationKey({ gift_id, attempt = 1 }: Pick<SendRequest, 'gift_id' | 'attempt'>): string {
  return attempt === 1 ? gift_id : `${gift_id}/${attempt}`;
}

const sent = { outcome: { const: 'sent' }, provider: id, message_id: id, simulated: yes };
const failed = { outcome: { const: 'failed' }, cause: text, simulated: yes };
const channel = { enum: ['sms', 'push'] };
const QUEUE = 'notifications';

export const NOTIFICATION_REQUESTS = {
  send: workerRequest<SendRequest, SendReply>(
    'notifications.send',
    QUEUE,
    object(
      {
        gift_id: id,
        transaction_id: id,
        buyer_id: id,
        channel,
        to: { type: 'array', items: text, minItems: 1, maxItems: 1_000 },
        sender_name: text,
        product_name: text,
        message: text,
        launch_url: text,
        locale: { type: ['string', 'null'] },
      },
      { attempt, expires_on: id, until: id },
    ),
    [sent, failed],
  ),
  lookUpNotification: workerRequest<SendLookup, SendLookupReply>(
    'notifications.lookup',
    QUEUE,
    object(
      { gift_id: id, started_at: id, channel, to: { type: 'array', items: text, maxItems: 1_000 }, launch_url: text },
      { attempt, stopped: text },
    ),
    [sent, failed, { outcome: { enum: ['never', 'unknown'] } }],
  ),
};
