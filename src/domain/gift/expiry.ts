/**
 * Events about a gift's expiry (docs/api/events.md#expiry-events). No decision depends on them: `isExpired` compares
 * days.
 */
import { daysAfter } from '../../lib/days.js';
import type { GiftExpired, GiftExpiring } from './events.js';
import type { IssuedGift } from './state.js';

/** Number of days before the last valid day from which a gift is expiring. */
export const EXPIRING_DAYS = 30;

/** @param today UTC */
export function expiryEvents(gift: IssuedGift, today: string): (GiftExpiring | GiftExpired)[] {
  const { issued, expiryAnnounced } = gift;
  const { expires_on } = issued;
  if (gift.status !== 'issued') return [];
  if (today > expires_on)
    return expiryAnnounced?.expired === expires_on ? [] : [{ type: 'GiftExpired', data: { expires_on } }];
  const from = daysAfter(expires_on, -EXPIRING_DAYS);
  // A last valid day that was set on or after `from` gets no `GiftExpiring`.
  if (today < from || setOn(gift) >= from || expiryAnnounced?.expiring === expires_on) return [];
  return [{ type: 'GiftExpiring', data: { expires_on } }];
}

/** The day (UTC) on which the last valid day was set. */
export const setOn = ({ issued, extendedAt }: Pick<IssuedGift, 'issued' | 'extendedAt'>): string =>
  (extendedAt ?? issued.purchased_at).slice(0, 10);
