/** What is said of a gift's expiry (docs/decisions.md#expiry-events). Whether it is expired is decided without: `isExpired`. */
import { daysAfter } from '../../lib/days.js';
import type { GiftExpired, GiftExpiring } from './events.js';
import type { IssuedGift } from './state.js';

/** Before the last valid day. */
export const EXPIRING_DAYS = 30;

/** @param today UTC */
export function expiryNews(gift: IssuedGift, today: string): (GiftExpiring | GiftExpired)[] {
  const { issued, expiryTold } = gift;
  const { expires_on } = issued;
  if (gift.status !== 'issued') return [];
  if (today > expires_on)
    return expiryTold?.expired === expires_on ? [] : [{ type: 'GiftExpired', data: { expires_on } }];
  const from = daysAfter(expires_on, -EXPIRING_DAYS);
  // Of a day that was set later than that there is no news.
  if (today < from || setOn(gift) >= from || expiryTold?.expiring === expires_on) return [];
  return [{ type: 'GiftExpiring', data: { expires_on } }];
}

/** The day (UTC) on which the last valid day was set. */
export const setOn = ({ issued, extendedAt }: Pick<IssuedGift, 'issued' | 'extendedAt'>): string =>
  (extendedAt ?? issued.purchased_at).slice(0, 10);
