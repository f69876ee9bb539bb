/** Where a receiver is notified. */
import type { Channel } from '../../domain/notification.js';
import type { PurchaseReceiver } from '../../domain/purchase/events.js';

/** How a user can be reached. Personal. */
export interface Contact {
  readonly name: string;
  readonly phone_number: string | null;
  readonly device_tokens: readonly string[];
  readonly locale: string | null;
}

/** Where a message goes. */
export interface Address {
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly locale: string | null;
}

/**
 * A phone number by SMS; a user by push where they have device tokens, else by SMS where they have a number; else
 * nowhere. `contact`: the user's, where the receiver is a user.
 */
export function addressOf(receiver: PurchaseReceiver, contact: Contact | undefined): Address | undefined {
  if (receiver.phone_number !== undefined) return { channel: 'sms', to: [receiver.phone_number], locale: null };
  if (contact === undefined) return undefined;
  const { phone_number, device_tokens, locale } = contact;
  if (device_tokens.length > 0) return { channel: 'push', to: device_tokens, locale };
  return phone_number === null ? undefined : { channel: 'sms', to: [phone_number], locale };
}
