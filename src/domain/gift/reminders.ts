/** Reminders before a gift expires (docs/api/gifts.md#reminders). */
import { daysAfter } from '../../lib/days.js';
import { isBlocked, isHeldBack, presentReceiver } from './decisions.js';
import { type ReminderDue, isSomebody } from './events.js';
import { setOn } from './expiry.js';
import type { IssuedGift } from './state.js';

interface ReminderFacts {
  /** Numbers of days before the last valid day on which reminders are due. */
  readonly days: readonly number[];
  /** The present day where the receiver is. */
  readonly today: string;
  /** Time at which the receiver's hours for messages end on that day (ISO 8601, UTC). */
  readonly until: string;
}

/** The day (UTC) from which the holder has known the gift, and its present last valid day. */
function knownSince(gift: IssuedGift): string {
  const { issued, receiverSince = '', releasedAt = '', claimedAt = '' } = gift;
  const got = isSomebody(issued.receiver) ? [receiverSince, releasedAt] : [claimedAt];
  return [setOn(gift), ...got.map((time) => time.slice(0, 10))].reduce((one, other) => (one > other ? one : other));
}

/** Where several reminders are due, as after a pause, only the last one is appended. */
export function remind(gift: IssuedGift, { days: all, today, until }: ReminderFacts): ReminderDue[] {
  const { issued, reminded } = gift;
  const { expires_on, transaction_id } = issued;
  if (gift.status !== 'issued' || isBlocked(gift) || isHeldBack(gift)) return [];
  if (!isSomebody(presentReceiver(gift)) || today > expires_on) return [];
  const due = all.filter((days) => today >= daysAfter(expires_on, -days));
  if (due.length === 0) return [];
  const days = Math.min(...due);
  if (reminded?.expires_on === expires_on && reminded.days <= days) return [];
  const day = daysAfter(expires_on, -days);
  // A holder who learned of the gift on that day or later needs no reminder for it.
  if (knownSince(gift) >= day) return [];
  // A late reminder, as after a block, is left out where the next one is due the day after.
  if (today > day && all.some((one) => one < days && today >= daysAfter(expires_on, -one - 1))) return [];
  return [{ type: 'ReminderDue', data: { transaction_id, days, expires_on, until } }];
}
