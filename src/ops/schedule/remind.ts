/**
 * Says hour by hour which gifts' holders are to be reminded (docs/decisions.md#reminders). The resend process sends the
 * messages. Safe to repeat at any point.
 */
import type { ReminderDue } from '../../domain/gift/events.js';
import { remind, remindedOf } from '../../domain/gift/reminders.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import { dayWithin, type Hours, zonesOf } from '../../domain/receiverZone.js';
import { daysAfter } from '../../lib/days.js';
import type { Records } from '../../ports/readStore.js';
import { addressOf } from '../../processors/notification/address.js';
import type { NotifyDeps } from '../../processors/notification/notifyStep.js';
import type { GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import { changeDueGifts } from './changeDueGifts.js';
import { forEachDue } from './dueIds.js';

export interface ReminderSettings {
  /** Before the last valid day; empty: there are no reminders. */
  readonly days: readonly number[];
  readonly hours: Hours;
}

export interface ReminderDeps extends GiftChangeDeps, Pick<NotifyDeps, 'contact' | 'numberOf'>, ReminderSettings {
  readonly schedule: Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>;
  readonly records: Records;
}

/** Losing it costs reminders that were due more than a day ago. */
const DONE = 'schedule/reminders';
const CATCH_UP_MS = 1_000;
/** Ids in memory: a purchase is not looked at again in the hours of days on which none of its holders waits. */
const MOST_SETTLED = 100_000;

/** The day (UTC) of the last round, of this log. */
interface Done {
  readonly logId: string;
  readonly day: string;
}

/** @returns one round: nothing where the hour is done, or the read model is behind. @throws the first failure, in the end */
export function reminderRounds(deps: ReminderDeps): (now: string, signal: AbortSignal) => Promise<void> {
  const { events, records, schedule, days } = deps;
  const { logId } = events;
  const settled = new Set<string>();
  let done: string | undefined;
  return async (now, signal) => {
    const hour = now.slice(0, 13);
    if (days.length === 0 || done === hour) return;
    const today = now.slice(0, 10);
    const stored = (await records.get<Done>(DONE))?.value;
    const last = stored?.logId === logId && stored.day < today ? stored.day : today;
    const end = await events.end();
    if (end !== undefined && !(await schedule.reached(end, CATCH_UP_MS))) return;
    if (settled.size > MOST_SETTLED) settled.clear();
    const look = async (id: string): Promise<void> => {
      if (settled.has(`${id} ${today}`)) return;
      const waits = await remindHolders(deps, id, now);
      if (!waits) settled.add(`${id} ${today}`);
    };
    await forEachDue(
      schedule,
      'expires_on',
      // A receiver's day begins up to a day before that of UTC, and ends up to a day after it.
      days.map((ahead) => ({ gte: daysAfter(last, ahead - 1), lte: daysAfter(today, ahead + 1) })),
      look,
      signal,
    );
    if (signal.aborted) return;
    if (stored?.logId !== logId || stored.day !== today) await records.put(DONE, { logId, day: today } satisfies Done);
    done = hour;
  };
}

/** @returns whether somebody's day or hour has still to come */
async function remindHolders(deps: ReminderDeps, id: string, now: string): Promise<boolean> {
  let waits = false;
  const decide = async (gift: IssuedGift): Promise<ReminderDue[]> => {
    const decided = await decideReminder(deps, gift, now);
    if (decided === 'waits') waits = true;
    return decided === 'waits' ? [] : decided;
  };
  await changeDueGifts(deps, id, { name: 'remind', at: now.slice(0, 13) }, decide);
  return waits;
}

/** `waits`: their day or hour has still to come. */
async function decideReminder(
  { days, hours, contact, numberOf }: ReminderDeps,
  gift: IssuedGift,
  now: string,
): Promise<ReminderDue[] | 'waits'> {
  const to = remindedOf(gift);
  // Whose day it is nowhere is not looked up.
  const mayBe = [-1, 0, 1].some((ahead) => remind(gift, { days, today: daysAfter(now, ahead), until: now }).length > 0);
  if (to === undefined || !mayBe) return [];
  const number = to.phone_id === undefined ? undefined : await numberOf(to.phone_id);
  const user = to.user_id === undefined ? undefined : await contact(to.user_id);
  if (addressOf(to, user, number) === undefined) return [];
  const zones = zonesOf({ phone_number: user?.phone_number ?? number ?? null, locale: user?.locale ?? null });
  const local = dayWithin(zones, hours, now);
  const due = local === undefined ? [] : remind(gift, { days, today: local.day, until: local.until });
  return due.length > 0 ? due : 'waits';
}
