/**
 * What Twilio tells by itself of a message that it has taken
 * (https://www.twilio.com/docs/messaging/guides/track-outbound-message-status), once its signature is verified.
 */
import { giftIdOf } from '../../domain/giftIds.js';
import type { SendReply, SendRequest } from '../../messages/notifications.js';
import { SignatureError } from '../signature.js';

/** Where it is told, under the service's address; the query names the gift, and which telling of its receiver it is. */
export const TWILIO_CALLBACK_PATH = '/webhooks/twilio';

/** Where Twilio is to tell of a message. `base`: the address without a query. */
export function callbackFor(base: string, { gift_id, attempt = 1 }: Pick<SendRequest, 'gift_id' | 'attempt'>): string {
  return `${base}?gift=${encodeURIComponent(gift_id)}${attempt === 1 ? '' : `&attempt=${attempt}`}`;
}

/** What became of a message. */
export interface DeliveryNews {
  readonly giftId: string;
  /** Which telling of the gift's receiver it is. */
  readonly attempt: number;
  /** Twilio's. */
  readonly messageId: string;
  /** `taken`: Twilio has it, or it has arrived; else why it was not delivered. */
  readonly outcome: 'taken' | { readonly failed: string };
}

/** Reads a callback: `undefined` where it says nothing that matters. @throws SignatureError */
export type CallbackReader = (call: {
  readonly signature: string;
  readonly query: string;
  readonly body: string;
}) => DeliveryNews | undefined;

/**
 * Twilio's are some hundred characters. To check the signature takes the fields apart and sorts them: of a megabyte of
 * them that takes half a second, and anybody may send it.
 */
const LONGEST = 16_384;
const SID = /^[A-Z]{2}[0-9a-fA-F]{32}$/;
const TAKEN: ReadonlySet<string> = new Set(['accepted', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'read']);
/** Twilio's statuses of a message that will not arrive. */
export const FAILED: ReadonlySet<string> = new Set(['failed', 'undelivered', 'canceled']);

/**
 * The reader. `publicUrl`: the service's address as Twilio was given it, which its signature covers. The library is
 * large: it is loaded here.
 */
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
    const asked = new URLSearchParams(query);
    const giftId = giftIdOf(asked.get('gift') ?? '');
    const attempt = Number(asked.get('attempt') ?? '1');
    const { MessageSid: messageId = '', MessageStatus: status = '', ErrorCode: code = '' } = form;
    if (giftId === undefined || !SID.test(messageId) || form['AccountSid'] !== accountSid) return undefined;
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

/** As a worker would have answered it. */
export function replyOf({ messageId, outcome }: DeliveryNews): SendReply {
  return outcome === 'taken'
    ? { outcome: 'sent', provider: 'twilio', message_id: messageId, simulated: false }
    : { outcome: 'failed', cause: outcome.failed, simulated: false };
}
