/**
 * Records once a day which gifts expire soon, and which have expired (docs/api/events.md#expiry-events). Safe to repeat
 * at any point.
 */
import { EXPIRING_DAYS, expiryEvents } from '../../domain/gift/expiry.js';
import { daysAfter } from '../../lib/days.js';
import type { GiftChangeDeps } from '../purchase/giftChanges.js';
import { changeDueGifts } from './changeDueGifts.js';
import { expiryRounds, type Round, type RoundDeps } from './expiryRounds.js';

/** Key of the record of the last day that was done. Losing it costs reading a month of expiries once more. */
const RECORD = 'schedule/expiry';
/** Number of days to read again, where the last day that was done is unknown. */
const DAYS_BACK = 31;

/** Rounds of expiry events, one a day. */
export function expiryEventRounds(deps: GiftChangeDeps & RoundDeps): Round {
  return expiryRounds(deps, {
    record: RECORD,
    periodOf: (now) => now.slice(0, 10),
    // The last day is done once more: events at its end may not have reached the read model in time.
    ranges: (last, today) =>
      [-1, EXPIRING_DAYS].map((days) => ({
        gte: daysAfter(last ?? daysAfter(today, -DAYS_BACK), days),
        lte: daysAfter(today, days),
      })),
    async work(due, now) {
      const today = now.slice(0, 10);
      await changeDueGifts(deps, due, { name: 'expiry', at: today }, (gift) => expiryEvents(gift, today));
      return undefined;
    },
  });
}
