/** Reminders before a gift expires (docs/decisions.md#reminders). */
import { daysAfter } from '../../lib/days.js';
import { isBlocked, isHeldBack } from './decisions.js';
import { type ReminderDue, isSomebody, type Receiver } from './events.js';
import { setOn } from './expiry.js';
import type { IssuedGift } from './state.js';

/** Who is reminded: the present receiver, or who claimed the gift. `undefined`: nobody. */
export function remindedOf({ issued: { receiver }, claimedBy }: IssuedGift): Receiver | undefined {
  if (isSomebody(receiver)) return receiver;
  return claimedBy === undefined ? undefined : { user_id: claimedBy };
}

export interface ReminderFacts {
  /** Before the last valid day. */
  readonly days: readonly number[];
  /** Where the receiver is. */
  readonly today: string;
  /** When their day is too old for messages: ISO 8601, UTC. */
  readonly until: string;
}

/** The day (UTC) from which the holder has known the gift, and its present last valid day. */
function knownSince(gift: IssuedGift): string {
  const { issued, receiverSince = '', releasedAt = '', claimedAt = '' } = gift;
  const got = isSomebody(issued.receiver) ? [receiverSince, releasedAt] : [claimedAt];
  return [setOn(gift), ...got.map((time) => time.slice(0, 10))].reduce((one, other) => (one > other ? one : other));
}

/** Of several that are due, as after a pause, only the last. */
export function remind(gift: IssuedGift, { days: all, today, until }: ReminderFacts): ReminderDue[] {
  const { issued, reminded } = gift;
  const { expires_on, transaction_id } = issued;
  if (gift.status !== 'issued' || isBlocked(gift) || isHeldBack(gift)) return [];
  if (remindedOf(gift) === undefined || today > expires_on) return [];
  const due = all.filter((days) => today >= daysAfter(expires_on, -days));
  if (due.length === 0) return [];
  const days = Math.min(...due);
  if (reminded?.expires_on === expires_on && reminded.days <= days) return [];
  const day = daysAfter(expires_on, -days);
  // Who got to know of it with fewer days to go is not surprised yet.
  if (knownSince(gift) >= day) return [];
  // One that is late, as after a block, would come with the next.
  if (today > day && all.some((one) => one < days && today >= daysAfter(expires_on, -one - 1))) return [];
  return [{ type: 'ReminderDue', data: { transaction_id, days, expires_on, until } }];
}
