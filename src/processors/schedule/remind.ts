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
import type { Due } from './due.js';
import { expiryRounds, type Round, type RoundDeps } from './expiryRounds.js';

export interface ReminderSettings {
  /** Numbers of days before the last valid day; empty: there are no reminders. */
  readonly days: readonly number[];
  readonly hours: Hours;
}

export interface ReminderDeps
  extends GiftChangeDeps, RoundDeps, Pick<NotifyDeps, 'contact' | 'numberOf'>, ReminderSettings {}

/** Key of the record of the last day that was done. Losing it costs reminders that were due more than a day ago. */
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
    ranges(last, today) {
      const from = last !== undefined && last < today ? last : today;
      // A receiver's day begins up to a day before that of UTC, and ends up to a day after it.
      return days.map((ahead) => ({ gte: daysAfter(from, ahead - 1), lte: daysAfter(today, ahead + 1) }));
    },
    async work(due, now) {
      const key = `${due.id} ${now.slice(0, 10)}`;
      if (settled.has(key)) return;
      if (settled.size > MOST_SETTLED) settled.clear();
      if (!(await remindHolders(deps, due, now))) settled.add(key);
    },
  });
}

/** @returns whether the day or hour of a holder has still to come */
async function remindHolders(deps: ReminderDeps, gifts: Due, now: string): Promise<boolean> {
  let waits = false;
  const decide = async (gift: IssuedGift): Promise<ReminderDue[]> => {
    const decided = await decideReminder(deps, gift, now);
    if (decided === 'waits') waits = true;
    return decided === 'waits' ? [] : decided;
  };
  await changeDueGifts(deps, gifts, { name: 'remind', at: now.slice(0, 13) }, decide);
  return waits;
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
