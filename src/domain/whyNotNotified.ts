/** Why a receiver is not notified of a gift: one rule for all notifications (docs/api/purchases.md#notifications). */
import { whyUnusable } from './gift/decisions.js';
import type { IssuedGift } from './gift/state.js';

/** Recorded causes of notifications that are not sent, by the reason why the gift can't be used. */
const UNUSABLE = {
  gift_cancelled: 'gift is cancelled',
  gift_already_redeemed: 'gift is redeemed',
  gift_expired: 'gift is expired',
  gift_blocked: 'gift is blocked',
} as const;

/** A block only postpones the notification: it is sent once all blocks have ended. */
export const POSTPONED: string = UNUSABLE.gift_blocked;

interface Occasion {
  /** Whether a later event made the notification needless. */
  readonly outdated: boolean;
  /** Set for a reminder; `until`: end of the hours in which it may be sent (ISO 8601). */
  readonly reminder?: { readonly until: string };
}

/**
 * @returns the cause of the notification's failure; `undefined`: the receiver is notified
 * @param now ISO 8601, UTC
 */
export function whyNotNotified(gift: IssuedGift, { outdated, reminder }: Occasion, now: string): string | undefined {
  const unusable = whyUnusable(gift, now);
  if (unusable !== undefined) return UNUSABLE[unusable];
  if (reminder === undefined) return outdated ? 'given to another receiver' : undefined;
  return outdated || Date.parse(reminder.until) <= Date.parse(now) ? 'no longer to be reminded' : undefined;
}
