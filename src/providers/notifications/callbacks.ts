/** Status callbacks of Twilio: https://www.twilio.com/docs/messaging/guides/track-outbound-message-status */
import { isGiftId } from '../../domain/giftIds.js';
import type { SendReply, SendRequest } from '../../messages/notifications.js';
import { SignatureError } from '../signature.js';

export const TWILIO_CALLBACK_PATH = '/webhooks/twilio';

/** The URL for the callbacks about one attempt. `base`: the URL without a query. */
export function callbackFor(base: string, { gift_id, attempt = 1 }: Pick<SendRequest, 'gift_id' | 'attempt'>): string {
  return `${base}?gift=${encodeURIComponent(gift_id)}${attempt === 1 ? '' : `&attempt=${attempt}`}`;
}

export interface DeliveryReport {
  readonly giftId: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly messageId: string;
  /** `taken`: Twilio has the message or delivered it; else the reason of the failure. */
  readonly outcome: 'taken' | { readonly failed: string };
}

/** Reads a callback; `undefined`: it tells nothing to be recorded. @throws SignatureError */
export type CallbackReader = (call: {
  readonly signature: string;
  readonly query: string;
  readonly body: string;
}) => DeliveryReport | undefined;

/**
 * Longest accepted body, in characters; Twilio's callbacks are far shorter. A check of the signature parses and sorts
 * all fields of an anonymous request.
 */
const LONGEST = 16_384;
const SID = /^[A-Z]{2}[0-9a-fA-F]{32}$/;
const TAKEN: ReadonlySet<string> = new Set(['accepted', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'read']);
/** Statuses of a message that will not arrive. */
export const FAILED: ReadonlySet<string> = new Set(['failed', 'undelivered', 'canceled']);

/** `publicUrl`: the service's URL as Twilio knows it, which its signature covers. Loads Twilio's large library. */
export async function twilioCallbacks(
  { authToken, accountSid }: { readonly authToken: string; readonly accountSid: string },
  publicUrl: string,
): Promise<CallbackReader> {
  const { default: twilio } = await import('twilio');
  return ({ signature, query, body }) => {
    if (body.length > LONGEST) throw new SignatureError('longer than any callback of Twilio');
    const form = Object.fromEntries(new URLSearchParams(body));
    const url = `${publicUrl}${TWILIO_CALLBACK_PATH}${query === '' ? '' : `?${query}`}`;
    if (signature === '' || !twilio.validateRequest(authToken, signature, url, form))
      throw new SignatureError('not signed by Twilio');
    const params = new URLSearchParams(query);
    const giftId = params.get('gift') ?? '';
    const attempt = Number(params.get('attempt') ?? '1');
    const { MessageSid: messageId = '', MessageStatus: status = '', ErrorCode: code = '' } = form;
    if (!isGiftId(giftId) || !SID.test(messageId) || form['AccountSid'] !== accountSid) return undefined;
    if (TAKEN.has(status)) return { giftId, attempt, messageId, outcome: 'taken' };
    if (FAILED.has(status))
      return {
        giftId,
        attempt,
        messageId,
        outcome: { failed: `not delivered (Twilio ${/^\d{1,6}$/.test(code) ? code : status})` },
      };
    return undefined;
  };
}

export function replyOf({ messageId, outcome }: DeliveryReport): SendReply {
  return outcome === 'taken'
    ? { outcome: 'sent', provider: 'twilio', message_id: messageId, simulated: false }
    : { outcome: 'failed', cause: outcome.failed, simulated: false };
}
