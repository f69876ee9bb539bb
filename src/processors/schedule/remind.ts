/**
 * Records hour by hour which holders of gifts must be reminded (docs/api/gifts.md#reminders). The notification process
 * sends the messages. Safe to repeat at any point.
 */
import type { ReminderDue } from '../../domain/gift/events.js';
import { presentReceiver } from '../../domain/gift/decisions.js';
import { remind } from '../../domain/gift/reminders.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import { dayWithin, type Hours, zonesOf } from '../../domain/receiverZone.js';
import { daysAfter } from '../../lib/days.js';
import { reachOf } from '../notification/address.js';
import type { NotifyDeps } from '../notification/notifyStep.js';
import type { GiftChangeDeps } from '../purchase/giftChanges.js';
import { changeDueGifts } from './changeDueGifts.js';
import type { DayRange, Due } from './due.js';
import { expiryRounds, type Round, type RoundDeps } from './expiryRounds.js';

export interface ReminderSettings {
  /** Numbers of days before the last valid day; empty: there are no reminders. */
  readonly days: readonly number[];
  readonly hours: Hours;
}

export interface ReminderDeps
  extends GiftChangeDeps, RoundDeps, Pick<NotifyDeps, 'contact' | 'numberOf'>, ReminderSettings {}

/**
 * Key of the record of the last day that was done. Losing it costs reminders that were due more than a day ago. While
 * such a reminder waits for its holder's hours, as after a pause that ended at night, the record stays as it is.
 */
const RECORD = 'schedule/reminders';
/** Most ids in memory: a purchase is not read again in the hours of days on which none of its holders waits. */
const MOST_SETTLED = 100_000;

/** Rounds of reminders, one an hour. */
export function reminderRounds(deps: ReminderDeps): Round {
  const { days } = deps;
  if (days.length === 0) return async () => undefined;
  const settled = new Set<string>();
  return expiryRounds(deps, {
    record: RECORD,
    periodOf: (now) => now.slice(0, 13),
    ranges: (last, today) => rangesFrom(days, last !== undefined && last < today ? last : today, today),
    async work(due, now) {
      const today = now.slice(0, 10);
      const key = `${due.id} ${today}`;
      if (settled.has(key)) return undefined;
      if (settled.size > MOST_SETTLED) settled.clear();
      const waiting = await waitingFor(deps, due, now);
      if (waiting.length === 0) settled.add(key);
      const found = rangesFrom(days, today, today);
      return waiting.every((day) => found.some(({ gte, lte }) => gte <= day && day <= lte)) ? undefined : 'waits';
    },
  });
}

/** Last valid days of which some holder may have to be reminded, on the days from `from` to `today`. */
function rangesFrom(days: readonly number[], from: string, today: string): readonly DayRange[] {
  // A receiver's day begins up to a day before that of UTC, and ends up to a day after it.
  return days.map((ahead) => ({ gte: daysAfter(from, ahead - 1), lte: daysAfter(today, ahead + 1) }));
}

/** Reminds holders. @returns the last valid days of the gifts whose holders' day or hour has still to come */
async function waitingFor(deps: ReminderDeps, gifts: Due, now: string): Promise<readonly string[]> {
  const waiting: string[] = [];
  const decide = async (gift: IssuedGift): Promise<ReminderDue[]> => {
    const decided = await decideReminder(deps, gift, now);
    if (decided !== 'waits') return decided;
    waiting.push(gift.issued.expires_on);
    return [];
  };
  await changeDueGifts(deps, gifts, { name: 'remind', at: now.slice(0, 13) }, decide);
  return waiting;
}

/** Reminder that is due for a gift; `waits` where the holder's day or hour has still to come. */
async function decideReminder(
  { days, hours, ...deps }: ReminderDeps,
  gift: IssuedGift,
  now: string,
): Promise<ReminderDue[] | 'waits'> {
  // The holder is looked up only where a reminder may be due in some time zone.
  const mayBe = [-1, 0, 1].some((ahead) => remind(gift, { days, today: daysAfter(now, ahead), until: now }).length > 0);
  if (!mayBe) return [];
  const { address, number, locale } = await reachOf(deps, presentReceiver(gift), gift);
  if (address === undefined) return [];
  const local = dayWithin(zonesOf({ phone_number: number, locale }), hours, now);
  const due = local === undefined ? [] : remind(gift, { days, today: local.day, until: local.until });
  return due.length > 0 ? due : 'waits';
}
