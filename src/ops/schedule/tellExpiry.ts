/**
 * Says once a day which gifts expire soon, and which have expired (docs/decisions.md#expiry-events). Safe to repeat at
 * any point.
 */
import { EXPIRING_DAYS, expiryNews } from '../../domain/gift/expiry.js';
import { daysAfter } from '../../lib/days.js';
import type { GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import { changeDueGifts } from './changeDueGifts.js';
import { expiryRounds, type Round, type RoundDeps } from './expiryRounds.js';

/** Losing it costs looking at a month of expiries once more. */
const RECORD = 'schedule/expiry';
/** Days, where it is not known what was done. */
const LOOK_BACK = 31;

/** One round a day. */
export function expiryNewsRounds(deps: GiftChangeDeps & RoundDeps): Round {
  return expiryRounds(deps, {
    record: RECORD,
    periodOf: (now) => now.slice(0, 10),
    // The last day once more: what was written at its end may not have been shown yet.
    ranges: (last, today) =>
      [-1, EXPIRING_DAYS].map((days) => ({
        gte: daysAfter(last ?? daysAfter(today, -LOOK_BACK), days),
        lte: daysAfter(today, days),
      })),
    async work(id, now) {
      const today = now.slice(0, 10);
      await changeDueGifts(deps, id, { name: 'expiry', at: today }, (gift) => expiryNews(gift, today));
    },
  });
}
