import type { Channel } from '../../domain/notification.js';
import type { PurchaseReceiver } from '../../domain/purchase/events.js';

/** Personal data: the contact details of a user. */
export interface Contact {
  readonly name: string;
  readonly phone_number: string | null;
  readonly device_tokens: readonly string[];
  readonly locale: string | null;
}

export interface Address {
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly locale: string | null;
}

export function addressOf(
  receiver: PurchaseReceiver,
  contact: Contact | undefined,
  number: string | undefined,
): Address | undefined {
  if (receiver.phone_id !== undefined)
    return number === undefined ? undefined : { channel: 'sms', to: [number], locale: null };
  if (contact === undefined) return undefined;
  const { phone_number, device_tokens, locale } = contact;
  if (device_tokens.length > 0) return { channel: 'push', to: device_tokens, locale };
  return phone_number === null ? undefined : { channel: 'sms', to: [phone_number], locale };
}
