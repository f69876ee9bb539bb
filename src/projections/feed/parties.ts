/** Who may know of what happens to a transaction or gift, at each time. */
import type { PhoneHolder } from '../../domain/account.js';
import type { Receiver } from '../../domain/gift/events.js';
import type { Position } from '../../ports/eventStore.js';

/** `t:{transactionId}`. `client_id`: through which it was bought. */
export interface TransactionParties {
  readonly buyer_id: string;
  readonly client_id?: string;
}

/** Of the event at `from` on. `since`: when it was sent to the holder (ISO 8601, UTC). */
export interface Holding {
  readonly from: Position;
  /** Absent: the buyer has it, until a user claims it. */
  readonly holder?: string;
  readonly since: string;
}

/** `g:{giftId}`. What was added stays: an event is folded with what stood before it (`Projection.contextIds`). */
export interface GiftParties extends TransactionParties {
  readonly transaction_id: string;
  readonly holdings: readonly Holding[];
  readonly blocks: readonly { readonly from: Position; readonly cause: string; readonly blocked: boolean }[];
  /** Of a scheduled gift: it has no holder before the event at `released` (docs/decisions.md#scheduled-sending). */
  readonly scheduled?: { readonly released?: Position };
}

export function holdingOf(from: Position, since: string, { user_id, phone_id }: Receiver): Holding {
  if (user_id !== undefined) return { from, since, holder: userHolder(user_id) };
  return phone_id === undefined ? { from, since } : { from, since, holder: phoneHolder(phone_id) };
}

export const userHolder = (userId: string): string => `user:${userId}`;

/** The owner of what is sent to the number (docs/decisions.md#gift-owner). */
export const phoneHolder = (phoneId: string): string => `phone:${phoneId}`;

/** `n:{phoneId}`. In order of time. */
export interface NumberHolders {
  readonly holders: readonly PhoneHolder[];
}

/** `u:{userId}`. All numbers that were ever the user's, by their ids. */
export interface UserNumbers {
  readonly phone_ids: readonly string[];
}

/** The latest at or before `position`; `undefined` also while its receiver is not to know of it. */
export function holdingAt(
  { holdings, scheduled }: Pick<GiftParties, 'holdings' | 'scheduled'>,
  position: Position,
): Holding | undefined {
  if (scheduled !== undefined && (scheduled.released === undefined || position < scheduled.released)) return undefined;
  return holdings.findLast(({ from }) => from <= position);
}

/** The latest before `position`; as `holdingAt`. */
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
