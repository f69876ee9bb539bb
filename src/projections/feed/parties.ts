/** The parties that may see the events of a transaction or gift, at each position of the log. */
import type { PhoneHolder } from '../../domain/account.js';
import type { Receiver } from '../../domain/gift/events.js';
import type { Position } from '../../ports/eventStore.js';

/** Parties of a purchase. `client_id`: the client through which it was bought. */
interface Parties {
  readonly buyer_id: string;
  readonly client_id?: string;
}

/** `t:{transactionId}`. */
export interface TransactionParties extends Parties {
  /** The caller's own name for the purchase. */
  readonly reference_id?: string;
}

/** The holder of a gift from the event at `from` on. */
export interface Holding {
  readonly from: Position;
  /** The holder; absent: the buyer has the gift until a user claims it. */
  readonly holder?: string;
  /** When it was sent to a phone number (ISO 8601, UTC), whose owners change. */
  readonly since?: string;
}

/** `g:{giftId}`. Parties are only added: an event is folded with those before it (`Projection.contextIds`). */
export interface GiftParties extends Parties {
  readonly transaction_id: string;
  readonly holdings: readonly Holding[];
  readonly blocks: readonly { readonly from: Position; readonly cause: string; readonly blocked: boolean }[];
  /** A scheduled gift has no holder before the event at `released` (docs/api/purchases.md#scheduled-sending). */
  readonly scheduled?: { readonly released?: Position };
}

export function holdingOf(from: Position, since: string, { user_id, phone_id }: Receiver): Holding {
  if (user_id !== undefined) return { from, holder: userHolder(user_id) };
  return phone_id === undefined ? { from } : { from, since, holder: phoneHolder(phone_id) };
}

export const userHolder = (userId: string): string => `user:${userId}`;

/** Holder of gifts sent to a phone number, whoever owns it at the time (docs/api/gifts.md#gift-owner). */
export const phoneHolder = (phoneId: string): string => `phone:${phoneId}`;

/** `n:{phoneId}`. Users who have held the phone number, in order of time. */
export interface NumberHolders {
  readonly holders: readonly PhoneHolder[];
}

/** `u:{userId}`. Ids of all phone numbers that the user has ever held. */
export interface UserNumbers {
  readonly phone_ids: readonly string[];
}

/** The latest holding at or before `position`; `undefined` also while the receiver must not see the gift. */
export function holdingAt(
  { holdings, scheduled }: Pick<GiftParties, 'holdings' | 'scheduled'>,
  position: Position,
): Holding | undefined {
  if (scheduled !== undefined && (scheduled.released === undefined || position < scheduled.released)) return undefined;
  return holdings.findLast(({ from }) => from <= position);
}

/** The latest holding before `position`; `undefined` where `holdingAt` is. */
export function holdingBefore(gift: GiftParties, position: Position): Holding | undefined {
  const before = gift.holdings.findLast(({ from }) => from < position);
  return holdingAt(gift, position) === undefined ? undefined : before;
}

export function isBlockedAt({ blocks }: Pick<GiftParties, 'blocks'>, position: Position): boolean {
  const causes = new Set<string>();
  for (const { from, cause, blocked } of blocks) {
    if (from > position) break;
    if (blocked) causes.add(cause);
    else causes.delete(cause);
  }
  return causes.size > 0;
}
