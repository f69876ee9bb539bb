import { readReservation } from '../../commands/readStreams.js';
import { holderOf, ownerByPhone, phoneStream } from '../../domain/account.js';
import type { Receiver } from '../../domain/gift/events.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import type { Channel } from '../../domain/notification.js';
import type { PurchaseReceiver } from '../../domain/purchase/events.js';
import type { EventStore } from '../../ports/eventStore.js';

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

export interface ReachDeps {
  readonly events: Pick<EventStore, 'read'>;
  /** Contact details of a user; `undefined`: no such user. @throws UnavailableError */
  readonly contact: (userId: string) => Promise<Contact | undefined>;
  /** The phone number of an id; `undefined`: it was erased. @throws UnavailableError */
  readonly numberOf: (phoneId: string) => Promise<string | undefined>;
}

/** How a receiver can be reached now. */
interface Reach {
  /** `undefined`: the receiver has no address. */
  readonly address: Address | undefined;
  /** Number of the receiver, if any: its country and the locale of a user tell where they are. */
  readonly number: string | null;
  readonly locale: string | null;
}

/**
 * How the receiver of a gift can be reached now. A gift that was sent to a number stays its owner's when the number
 * moves on (docs/api/gifts.md#gift-owner): then its owner is reached as a user, and no later holder of the number.
 * @throws UnavailableError
 */
export async function reachOf(
  { events, contact, numberOf }: ReachDeps,
  receiver: Receiver,
  { issued, receiverSince }: Pick<IssuedGift, 'issued' | 'receiverSince'>,
): Promise<Reach> {
  const { user_id, phone_id } = receiver;
  if (phone_id === undefined) return reachOfUser(user_id === undefined ? undefined : await contact(user_id));
  const holders = await readReservation(events, phoneStream(phone_id));
  const holder = holderOf(holders);
  const owner = ownerByPhone(holders, receiverSince ?? issued.purchased_at);
  if (owner !== undefined && owner !== holder) {
    const found = reachOfUser(await contact(owner));
    // A number that nobody has taken since may still be that of its former holder.
    if (found.address !== undefined || holder !== undefined) return found;
  }
  const number = await numberOf(phone_id);
  return { address: addressOf(receiver, undefined, number), number: number ?? null, locale: null };
}

function reachOfUser(user: Contact | undefined): Reach {
  return {
    address: addressOf({}, user, undefined),
    number: user?.phone_number ?? null,
    locale: user?.locale ?? null,
  };
}
